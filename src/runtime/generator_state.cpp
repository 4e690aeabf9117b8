#include "runtime/generator_state.hpp"

#include <ATen/Context.h>

#include <mutex>

namespace hortator::runtime {

at::Generator default_generator(c10::Device device) { return at::globalContext().defaultGenerator(device); }

at::Tensor generator_state(at::Generator generator) {
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(at::Generator generator, const at::Tensor& state) {
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace hortator::runtime
