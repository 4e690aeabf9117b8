#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "parallel/pipeline/schedule.hpp"

namespace hortator::parallel {

/// Which stage runs which layers of a module, and which ranks have its parameters.
struct StageMap {
  std::int64_t layers = 0;                                ///< of the whole module
  std::vector<core::Range> of_stages = {};                ///< the layers of each stage
  std::map<std::string, std::vector<int>> ranks_of = {};  ///< of each parameter and buffer by name, ascending
};

/// Cuts the module's layers (HasPipelineLayers) into the stages of `shape`, so that their matrices cost about the same.
/// Throws UsageError if it names no layers, fewer than there are stages, or layers that it does not have. The same on
/// all ranks. Local.
StageMap map_stages(const torch::nn::Module& module, const PipelineShape& shape);

}  // namespace hortator::parallel
