#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "parallel/tensor/operator_call.hpp"

/// Views of gathered copies. An operator without a rule computes with whole tensors that are gathered for it. Where its
/// result shares their memory, it would not follow the divided tensor, nor the divided tensor a write into it. Such
/// results are ordinary tensors that carry interception::divided_key, so that both can be refused.
namespace hortator::parallel {

/// Whether the tensor is such a view.
bool is_copy_view(const at::Tensor& tensor);

/// Makes `view` such a view of the divided tensor with this part. It must be no view of another tensor.
void mark_copy_view(const at::Tensor& view, const at::Tensor& part);

/// The memory of divided tensors that operators see as ordinary tensors.
class Copies {
 public:
  /// `copy` has the values of the divided tensor with this part.
  void add(at::Tensor copy, at::Tensor part) { copies_.push_back({std::move(copy), std::move(part)}); }
  bool empty() const { return copies_.empty(); }
  /// Replaces arguments that are views of copies by tensors that are not intercepted. Throws UsageError if the operator
  /// writes into one, or the divided tensor was changed since.
  void take_arguments(OperatorCall& call);
  /// Marks the results of a call that has run which share memory with a copy.
  void mark_results(OperatorCall& call) const;

 private:
  struct CopyOfPart {
    at::Tensor copy, part;
  };
  c10::IValue taken(const c10::IValue& value);
  void mark(const c10::IValue& value) const;

  std::vector<CopyOfPart> copies_;
};

}  // namespace hortator::parallel
