#include "accelerator/channels/random_state.hpp"

#include <mutex>

#include "mpi/collectives.hpp"
#include "runtime/generator_state.hpp"

namespace hortator::accelerator {

using runtime::default_generator;
using runtime::generator_state;
using runtime::set_generator_state;

StateDict random_state(c10::Device device) {
  StateDict state;
  state.put("cpu", generator_state(default_generator(at::kCPU)));
  if (!device.is_cpu()) state.put("device", generator_state(default_generator(device)));
  return state;
}

void restore_random_state(c10::Device device, const StateDict& state) {
  set_generator_state(default_generator(at::kCPU), state.get<at::Tensor>("cpu"));
  // A run that moves from a GPU to the CPU, or back, has no saved state for the new device's generator.
  if (!device.is_cpu() && state.contains("device")) {
    set_generator_state(default_generator(device), state.get<at::Tensor>("device"));
  }
}

void seed_random_state(c10::Device device, std::uint64_t seed) {
  for (auto& generator : default_generators(device)) {
    const std::scoped_lock lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

std::vector<at::Generator> default_generators(c10::Device device) {
  std::vector<at::Generator> generators = {default_generator(at::kCPU)};
  if (!device.is_cpu()) generators.push_back(default_generator(device));
  return generators;
}

void synchronise(const mpi::Communicator& host, const std::vector<at::Generator>& generators) {
  for (const auto& generator : generators) {
    auto state = generator_state(generator).contiguous();
    mpi::broadcast_bytes(host, state.mutable_data_ptr(), state.nbytes(), 0);
    set_generator_state(generator, state);
  }
}

}  // namespace hortator::accelerator
