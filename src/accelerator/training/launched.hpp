#pragma once

#include <hortator/accelerator.hpp>
#include <hortator/training/recompute_layers.hpp>
#include <optional>

#include "accelerator/options/common_options.hpp"
#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// Returns the options with the launcher's variables applied, as Hugging Face Accelerate does:
/// HORTATOR_GRADIENT_ACCUMULATION_STEPS overrides the program's number; HORTATOR_ZERO_STAGE, HORTATOR_OFFLOAD_* and the
/// axes apply if the program sets none; HORTATOR_DEEPSPEED_CONFIG sets what neither the program nor these set. In a
/// scaling study (HORTATOR_MEASURE), HORTATOR_RUN_DIR overrides the project's folder. UsageError for an invalid value.
/// (HORTATOR_CPU, HORTATOR_MIXED_PRECISION and HORTATOR_DEBUG are read where they act.)
AcceleratorOptions launched(AcceleratorOptions options, const core::Variables& variables = core::process_variables());

/// The configuration with the stage and group that the launcher asks for, if `config` has no stage. Reads no DeepSpeed
/// file. UsageError for an invalid value.
ZeroConfig launched_sharding(ZeroConfig config, const core::Variables& variables);

/// The largest norm of gradients that the launcher asks for (HORTATOR_GRADIENT_CLIPPING, or DeepSpeed, which clips at 1
/// by default); nothing if it asks for none. UsageError for an invalid value.
std::optional<double> launched_clipping(const core::Variables& variables = core::process_variables());

/// The norm that "auto" stands for in a DeepSpeed file: that of the launcher's variables, otherwise 1; nothing if they
/// ask for 0. UsageError for an invalid value.
std::optional<double> automatic_clipping(const core::Variables& variables);

/// The layers that the launcher asks to recompute (HORTATOR_RECOMPUTE_LAYERS); nothing if it asks for none.
std::optional<RecomputeLayersOptions> launched_recomputation(
    const core::Variables& variables = core::process_variables());

/// What variables decide besides the options, by name, for the ranks to compare. `options` are launched(). UsageError
/// for an invalid value.
NamedValues launched_values(const AcceleratorOptions& options);

/// Logs which entries of the launcher's DeepSpeed file have no effect, and which are unknown.
void report_launched_file(const core::Variables& variables = core::process_variables());

}  // namespace hortator::accelerator
