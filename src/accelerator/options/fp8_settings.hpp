#pragma once

#include <hortator/training/fp8.hpp>

#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// What the launcher's settings choose for Precision::fp8 (HORTATOR_FP8_SCALING and others). Throws UsageError for
/// invalid values.
Fp8Options fp8_settings(const core::Variables& variables);

}  // namespace hortator::accelerator
