#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "parallel/pipeline/plain/route.hpp"

namespace hortator::parallel {

/// The tensors in values, also in lists. Undefined ones keep their place.
std::vector<at::Tensor> tensors_of(c10::ArrayRef<c10::IValue> values);

/// The results that this rank does not have, and those that go to other stages.
class StagedValues {
 public:
  /// A result that shares the memory of another one.
  struct View {
    ValueId view, of;
  };

  /// Runs operator `number` on shapes alone; what it returns has no memory. Throws UsageError if it needs values.
  std::vector<View> run_on_shapes(const c10::OperatorHandle& op, std::int64_t number, torch::jit::Stack* stack);
  void add(const at::Tensor& tensor, const ValueId& id);
  std::optional<ValueId> find(const at::Tensor& tensor) const;
  const at::Tensor& at(const ValueId& id) const { return tensors_.at(id); }

 private:
  std::unordered_map<const void*, ValueId> ids_;  ///< by TensorImpl
  std::map<ValueId, at::Tensor> tensors_;
};

}  // namespace hortator::parallel
