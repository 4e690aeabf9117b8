#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace hortator::bigmodel {

/// The tensors that one construction has made without memory, and what would have initialised them. Within LibTorch's
/// dispatcher it sees each call of its thread before any other kernel does.
class EmptyRecorder {
 public:
  /// Does what the operator's call is to do, or notes it. The arguments on the stack become the results.
  void handle(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

  /// Gives the tensor memory and values, if it has none.
  void fill(const at::Tensor& tensor);

  void forget(const at::Tensor& tensor);  ///< it stays without memory

  /// Whoever reads one of those that are left is told `why` there is nothing.
  void leave_empty(const std::string& why);

 private:
  struct Initialiser {
    c10::OperatorHandle op;
    torch::jit::Stack arguments;
  };
  struct Pending {
    c10::Storage storage;  ///< held, so that its address means nothing else
    std::vector<Initialiser> initialisers = {};
  };

  Pending* find(const c10::IValue& value);
  bool note(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  bool make_without_memory(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  void fill(Pending& pending);

  std::unordered_map<const c10::StorageImpl*, Pending> pending_;
};

/// A tensor on the CPU of the same type and strides; its storage knows its size and has no memory.
at::Tensor without_memory(const at::Tensor& like);

/// Whoever reads the tensor's memory is told `why` there is none.
void refuse_reading(const c10::Storage& storage, const std::string& why);

}  // namespace hortator::bigmodel
