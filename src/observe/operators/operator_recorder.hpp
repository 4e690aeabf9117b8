#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "observe/operators/operator_record.hpp"

namespace hortator::observe {

class OperatorLog;

/// Records each operator during its lifetime: those that read or write elements and are not part of another one.
/// Covers this thread and the backward passes that it starts. Only one may exist at a time.
class OperatorRecorder {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  /// Operators that read one of `parameters` are those of its module.
  explicit OperatorRecorder(const NamedTensors& parameters);
  ~OperatorRecorder();
  OperatorRecorder(const OperatorRecorder&) = delete;
  OperatorRecorder& operator=(const OperatorRecorder&) = delete;

  /// Records the tensors that have memory, each as the result of an operator of this name whose path is its own.
  void note(const std::string& name, const NamedTensors& tensors);
  /// Operators from now on compute this part of the batch.
  void begin_part(int number);
  /// Operators from now on belong to the update, not to a module.
  void begin_update();
  std::vector<OperatorRecord> take();

 private:
  std::unique_ptr<OperatorLog> log_;
  at::CallbackHandle handle_;
};

}  // namespace hortator::observe
