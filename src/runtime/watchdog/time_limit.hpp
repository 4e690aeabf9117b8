#pragma once

#include <chrono>
#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// How long a collective may last: what the program asked for, else HORTATOR_TIMEOUT, else ten minutes. Throws when
/// either is no time.
std::chrono::milliseconds collective_timeout(std::optional<std::chrono::milliseconds> asked,
                                             const core::Variables& variables);

}  // namespace hortator::runtime
