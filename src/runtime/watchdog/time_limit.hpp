#pragma once

#include <chrono>
#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// The time limit of a collective: the program's `asked`, else HORTATOR_TIMEOUT, else ten minutes. Throws when either
/// is not a valid time.
std::chrono::milliseconds collective_timeout(std::optional<std::chrono::milliseconds> asked,
                                             const core::Variables& variables);

}  // namespace hortator::runtime
