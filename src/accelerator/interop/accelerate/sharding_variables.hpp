#pragma once

#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// The sharding that Accelerate's launcher asks for by ACCELERATE_USE_FSDP or ACCELERATE_USE_DEEPSPEED, as text for
/// zero_config(), and the variable that decides it. Nothing if neither is true. Throws UsageError for an invalid value.
/// Pure.
std::optional<core::SetVariable> accelerate_sharding(const core::Variables& variables);

}  // namespace hortator::accelerator
