#pragma once

#include <torch/library.h>

#include <optional>
#include <type_traits>

namespace hortator::interception {

/// `kernel` computes an operator of LibTorch that consists of others, from now on and until the process ends. No key
/// has a kernel of its own for such an operator, so that none is replaced. Without gradients in inference mode,
/// operators go to the kernels of the device.
template <auto* kernel>
void compute_composite(const char* name) {
  using Key = c10::DispatchKey;
  using Function = c10::CompileTimeFunctionPointer<std::remove_pointer_t<decltype(kernel)>, kernel>;
  // Never destroyed: operators may run while static objects are destroyed.
  static auto* library = new torch::Library(torch::Library::IMPL, "aten", std::nullopt, __FILE__, __LINE__);
  for (const auto key : {Key::CPU, Key::AutogradCPU, Key::CUDA, Key::AutogradCUDA, Key::XPU, Key::AutogradXPU,
                         Key::PrivateUse1, Key::AutogradPrivateUse1})
    library->impl(name, torch::dispatch(key, Function()));
}

}  // namespace hortator::interception
