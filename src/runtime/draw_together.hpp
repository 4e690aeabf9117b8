#pragma once

#include <cstdint>
#include <optional>

namespace hortator::runtime {

/// From now on set_seed() with device_specific adds this number to the seed instead of the rank's: ranks that compute
/// the same batches have the same number. Nothing restores the rank's.
void draw_with(std::optional<std::uint64_t> number);

}  // namespace hortator::runtime
