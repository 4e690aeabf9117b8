#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <hortator/training/state_dict.hpp>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::accelerator {

/// The states of this process's random number generators, of the CPU and of `device`, and back.
StateDict random_state(c10::Device device);
void restore_random_state(c10::Device device, const StateDict& state);
/// They begin anew, with this seed.
void seed_random_state(c10::Device device, std::uint64_t seed);

/// Those of the CPU and of `device`.
std::vector<at::Generator> default_generators(c10::Device device);

/// All ranks go on with rank 0's random numbers. @collective
void synchronise(const mpi::Communicator& host, const std::vector<at::Generator>& generators);

}  // namespace hortator::accelerator
