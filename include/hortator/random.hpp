#pragma once

#include <cstdint>
#include <hortator/export.hpp>

namespace hortator {

struct SeedOptions {
  bool device_specific = false;  ///< add the rank, so that ranks draw different numbers
  bool deterministic = false;    ///< only deterministic algorithms; an operator that has none throws
};

/// Seeds all random number generators of this process (CPU and every device).
HORTATOR_API void set_seed(std::uint64_t seed, const SeedOptions& options = {});

}  // namespace hortator
