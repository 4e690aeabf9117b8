#pragma once

#include <hortator/training/accelerator_options.hpp>
#include <hortator/training/recompute_layers.hpp>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/options/common_options.hpp"
#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// What the program and its launcher ask for together.
struct LaunchedOptions {
  AcceleratorOptions options = {};
  std::optional<double> max_norm = {};  ///< of the gradients in an update (HORTATOR_GRADIENT_CLIPPING)
  std::optional<RecomputeLayersOptions> recomputed = {};  ///< HORTATOR_RECOMPUTE_LAYERS
  std::string deepspeed_file = "";
  std::vector<std::string> ignored = {};  ///< entries of that file that have no effect
  std::vector<std::string> unknown = {};  ///< entries that DeepSpeed does not have
  std::string plan = "";                  ///< the JSON of parallel.automatic, for the run folder of the main process

  /// Returns what variables decide besides the options, for the ranks to compare. UsageError for an invalid value.
  NamedValues values() const;
  /// Logs which entries of the file have no effect, and which are unknown.
  void report_file() const;
};

/// Returns the program's options with the launcher's variables applied, as Hugging Face Accelerate does:
/// HORTATOR_GRADIENT_ACCUMULATION_STEPS overrides the program's number; HORTATOR_ZERO_STAGE, HORTATOR_OFFLOAD_* and the
/// axes apply if the program sets none; HORTATOR_DEEPSPEED_CONFIG sets what neither the program nor these set. In a
/// scaling study (HORTATOR_MEASURE), HORTATOR_RUN_DIR overrides the project's folder. UsageError for an invalid value.
/// (HORTATOR_CPU, HORTATOR_MIXED_PRECISION and HORTATOR_DEBUG are read where they act.)
LaunchedOptions launched(AcceleratorOptions options, const core::Variables& variables = core::process_variables());

}  // namespace hortator::accelerator
