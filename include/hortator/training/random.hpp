#pragma once

#include <cstdint>
#include <hortator/export.hpp>

namespace hortator {

/// Of set_seed.
struct SeedOptions {
  /// Add the rank, so that ranks draw different numbers (dropout, augmentation). The order of the data stays one for
  /// all: it follows `seed` alone.
  bool device_specific = false;
  /// From now on only deterministic algorithms; an operator that has none throws when it is used. Stays on.
  bool deterministic = false;
};

/// Seeds this process's random number generators, of the CPU and of every device, and is what a loader's shuffled order
/// starts from unless DataOptions::seed says otherwise. Not @collective: call it on every rank, with the same seed,
/// before the model is made. (prepare() gives all ranks rank 0's weights in any case, and takes the seed that
/// AcceleratorOptions::reproducible draws everything from.) Generators that a program makes
/// itself, those of the C++ library among them, are not touched. While a run goes on, what makes ranks draw alike again
/// is Accelerator::synchronize_rng_states(); save_state() keeps each rank's own state.
HORTATOR_API void set_seed(std::uint64_t seed, const SeedOptions& options = {});

}  // namespace hortator
