#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <string_view>
#include <vector>

/// Functions that LibTorch's dispatcher calls in place of operators. They stay until the process ends, because
/// operators may run while static objects are destroyed.
namespace hortator::interception {

/// Runs an operator that was intercepted.
using OperatorHandler = void (*)(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*);

template <OperatorHandler handler>
c10::BoxedKernel as_kernel() {
  return c10::BoxedKernel::makeFromFunction<handler>();
}

/// Every operator that meets `key` goes to `kernel`. A key can have one such function in a process: where another
/// library has set one, throws Error, which begins with `refusal`.
void intercept_all(c10::DispatchKey key, c10::BoxedKernel kernel, std::string_view refusal);

/// The same for these operators of LibTorch ("normal_", "rand.generator").
void intercept_operators(c10::DispatchKey key, c10::BoxedKernel kernel, const std::vector<std::string>& operators);

/// Runs the operator as if `key` had no function.
inline void pass_on(c10::DispatchKey key, const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key), stack);
}

}  // namespace hortator::interception
