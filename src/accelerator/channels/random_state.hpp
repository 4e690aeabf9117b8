#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <hortator/training/state_dict.hpp>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::accelerator {

/// Returns the states of this process's random number generators, of the CPU and of `device`; the second restores them.
StateDict random_state(c10::Device device);
void restore_random_state(c10::Device device, const StateDict& state);
/// Seeds the random number generators of the CPU and of `device`.
void seed_random_state(c10::Device device, std::uint64_t seed);

/// The default generators of the CPU and of `device`.
std::vector<at::Generator> default_generators(c10::Device device);

/// Copies the generators' states from rank 0 to all ranks. @collective
void synchronise(const mpi::Communicator& host, const std::vector<at::Generator>& generators);

}  // namespace hortator::accelerator
