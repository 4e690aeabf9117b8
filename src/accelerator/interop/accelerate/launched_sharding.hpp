#pragma once

#include <hortator/parallel/zero.hpp>
#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// The configuration with the stage and group that the launcher asks for, if `config` has no stage. Reads no DeepSpeed
/// file. UsageError for an invalid value.
ZeroConfig launched_sharding(ZeroConfig config, const core::Variables& variables);

/// The norm that "auto" stands for in a DeepSpeed file: that of the launcher's variables, otherwise 1; nothing if they
/// ask for 0. UsageError for an invalid value.
std::optional<double> automatic_clipping(const core::Variables& variables);

}  // namespace hortator::accelerator
