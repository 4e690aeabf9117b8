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
  /// By the same names: the stage in which it is registered, and the last one if it is read there too.
  std::map<std::string, std::vector<int>> stages_of = {};
  /// The module names no layers: its stages are cut by the order in which its parts are registered, and found in its
  /// forward pass by the operators that read them (plain/plain_pass.hpp).
  bool is_plain = false;
};

/// Whether the module, or one within it, names its layers (HasPipelineLayers).
bool names_layers(const torch::nn::Module& module);

/// Cuts the module's layers (HasPipelineLayers), or the parts of one that names none, into the stages of `shape`, so
/// that their matrices cost about the same. Throws UsageError if there are fewer than there are stages, or if it names
/// layers that it does not have. The same on all ranks. Local.
StageMap map_stages(const torch::nn::Module& module, const PipelineShape& shape);

}  // namespace hortator::parallel
