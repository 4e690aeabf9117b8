#pragma once

#include <hortator/accelerator.hpp>
#include <hortator/training/recompute_layers.hpp>
#include <optional>

#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// Returns the options with the launcher's variables applied, as Hugging Face Accelerate does:
/// HORTATOR_GRADIENT_ACCUMULATION_STEPS overrides the program's number; HORTATOR_ZERO_STAGE, HORTATOR_OFFLOAD_* and the
/// axes apply if the program sets none; HORTATOR_DEEPSPEED_CONFIG sets what neither the program nor these set. In a
/// scaling study (HORTATOR_MEASURE), HORTATOR_RUN_DIR overrides the project's folder. UsageError for an invalid value.
/// (HORTATOR_CPU, HORTATOR_MIXED_PRECISION and HORTATOR_DEBUG are read where they act.)
AcceleratorOptions launched(AcceleratorOptions options, const core::Variables& variables = core::process_variables());

/// The largest norm of gradients that the launcher asks for (HORTATOR_GRADIENT_CLIPPING, or a DeepSpeed file); nothing
/// if it asks for none. UsageError for an invalid value.
std::optional<double> launched_clipping(const core::Variables& variables = core::process_variables());

/// The layers that the launcher asks to recompute (HORTATOR_RECOMPUTE_LAYERS); nothing if it asks for none.
std::optional<RecomputeLayersOptions> launched_recomputation(
    const core::Variables& variables = core::process_variables());

/// Logs which entries of the launcher's DeepSpeed file have no effect, and which are unknown.
void report_launched_file(const core::Variables& variables = core::process_variables());

}  // namespace hortator::accelerator
