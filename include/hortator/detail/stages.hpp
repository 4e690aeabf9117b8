#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <hortator/export.hpp>
#include <vector>

namespace hortator::detail {

/// Runs forward of a prepared module whose layers are on several ranks, in evaluation: `run` calls it, and fills in the
/// tensors of `results`, which all ranks then have from the last stage, whole. Returns false, and does nothing, for
/// other modules and within a pass. If a stage throws, all do. @collective along the pipeline
HORTATOR_API bool forward_through_stages(const torch::nn::Module& module, const std::function<void()>& run,
                                         const std::vector<at::Tensor*>& results);

}  // namespace hortator::detail
