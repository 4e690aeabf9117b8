#pragma once

#include <hortator/accelerator.hpp>

#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// Returns the options with the launcher's variables applied, as Hugging Face Accelerate does:
/// HORTATOR_GRADIENT_ACCUMULATION_STEPS overrides the program's number; HORTATOR_ZERO_STAGE applies if the program sets
/// no stage; in a scaling study (HORTATOR_MEASURE), HORTATOR_RUN_DIR overrides the project's folder. UsageError for an
/// invalid value. (HORTATOR_CPU, HORTATOR_MIXED_PRECISION and HORTATOR_DEBUG are read where they act.)
AcceleratorOptions launched(AcceleratorOptions options, const core::Variables& variables = core::process_variables());

}  // namespace hortator::accelerator
