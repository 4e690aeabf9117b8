#pragma once

#include <cstdint>
#include <optional>

namespace hortator::runtime {

/// What set_seed was last given on all ranks alike, without any rank's share; nothing when it was never called.
std::optional<std::uint64_t> base_seed();

}  // namespace hortator::runtime
