#pragma once

#include <torch/nn/module.h>

#include <hortator/bigmodel/weights.hpp>

#include "accelerator/weights/loading.hpp"

namespace hortator::accelerator {

/// Fills a module whose parts options.device_map places, and writes the parts on disk to options.offload_folder. Those
/// have no values then: using one throws an error that says where they are.
void load_in_places(const Loading& loading, torch::nn::Module& module, const LoadWeightsOptions& options);

}  // namespace hortator::accelerator
