#pragma once

#include <torch/nn/module.h>

namespace hortator::accelerator {

/// Throws UsageError for a layer that computes with another tensor than the parameter that it has registered, as after
/// `head->weight = embedding->weight`: backward would give its parameter no gradient, and checkpoints would hold values
/// that nothing reads. The same on any number of ranks. Frozen parameters may be replaced.
void require_own_parameters(const torch::nn::Module& module);

}  // namespace hortator::accelerator
