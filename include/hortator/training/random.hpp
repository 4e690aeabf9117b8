#pragma once

#include <cstdint>
#include <hortator/export.hpp>

namespace hortator {

/// Options of set_seed().
struct SeedOptions {
  /// Adds the rank, so that ranks draw different numbers (dropout, augmentation). The order of the data still depends
  /// on `seed` only. Ranks that compute the same batches (along the mesh's axis tensor) draw equal numbers: they add
  /// the number of their group, and get the state of its first rank when the Accelerator is made.
  bool device_specific = false;
  /// Uses only deterministic algorithms from now on. An operator without one throws when it is used. Stays on.
  bool deterministic = false;
};

/// Seeds this process's random number generators of the CPU and all devices. The seed also determines the shuffled
/// order of loaders, unless DataOptions::seed is set. Not @collective: call it on every rank, with the same seed,
/// before you construct the model. (prepare() gives all ranks rank 0's weights in any case, and takes the seed for
/// AcceleratorOptions::reproducible.) Does not touch generators that your program creates, including those of the C++
/// library. To make ranks draw equal numbers again during a run, use Accelerator::synchronize_rng_states().
/// save_state() saves each rank's own state.
HORTATOR_API void set_seed(std::uint64_t seed, const SeedOptions& options = {});

}  // namespace hortator
