#include "accelerator/random_state.hpp"

#include <ATen/Context.h>

#include <mutex>

namespace hortator::accelerator {
namespace {

at::Tensor state_of(at::Generator generator) {
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_state_of(at::Generator generator, const at::Tensor& state) {
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

StateDict random_state(c10::Device device) {
  StateDict state;
  state.put("cpu", state_of(at::globalContext().defaultGenerator(at::kCPU)));
  if (!device.is_cpu()) state.put("device", state_of(at::globalContext().defaultGenerator(device)));
  return state;
}

void restore_random_state(c10::Device device, const StateDict& state) {
  set_state_of(at::globalContext().defaultGenerator(at::kCPU), state.get<at::Tensor>("cpu"));
  // A run that moves from a GPU to the CPU, or back, draws its numbers elsewhere from now on.
  if (!device.is_cpu() && state.contains("device")) {
    set_state_of(at::globalContext().defaultGenerator(device), state.get<at::Tensor>("device"));
  }
}

}  // namespace hortator::accelerator
