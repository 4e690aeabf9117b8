#pragma once

#include <hortator/accelerator.hpp>

#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// The options, with what the launcher says by its variables, as in the reference: HORTATOR_GRADIENT_ACCUMULATION_STEPS
/// outranks the program's own number. HORTATOR_ZERO_STAGE counts where the program says no stage. In a scaling study
/// (HORTATOR_MEASURE) HORTATOR_RUN_DIR outranks the project's folder. UsageError for a value that is none.
/// (HORTATOR_CPU, HORTATOR_MIXED_PRECISION and HORTATOR_DEBUG are read where they act.)
AcceleratorOptions launched(AcceleratorOptions options, const core::Variables& variables = core::process_variables());

}  // namespace hortator::accelerator
