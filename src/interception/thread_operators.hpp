#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "interception/dispatch_keys.hpp"
#include "interception/registration.hpp"

namespace hortator::interception {

/// While it lives, each operator that this thread calls is run by `handler`, above autograd; within the handler
/// operators are as always where ThreadOperators::Inside lives. Where they nest, the innermost handles.
class ThreadOperators {
 public:
  explicit ThreadOperators(OperatorHandler handler);
  ~ThreadOperators();
  ThreadOperators(const ThreadOperators&) = delete;
  ThreadOperators& operator=(const ThreadOperators&) = delete;

  struct Inside {
    c10::impl::ExcludeDispatchKeyGuard guard{recording_key};
  };
  /// Runs the operator, and those that it consists of, as if nothing were handled.
  static void run_as_always(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
  /// The same, but those that it consists of are handled.
  static void open(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

 private:
  OperatorHandler former_;
  c10::impl::IncludeDispatchKeyGuard on_;
};

}  // namespace hortator::interception
