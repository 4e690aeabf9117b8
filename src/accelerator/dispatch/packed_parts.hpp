#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <hortator/quantise.hpp>
#include <memory>
#include <vector>

#include "accelerator/dispatch/placing.hpp"
#include "accelerator/weights/loading.hpp"
#include "packed/packing_source.hpp"

/// Parts of a dispatched model that are packed while they are loaded.
namespace hortator::accelerator {

/// Packs the layers that options choose: their parameters get the packed size, and the result has their bytes. Those
/// that nothing fills are packed in place.
std::shared_ptr<packed::PackingSource> packing_source(const Loading& loading, const torch::nn::Module& module,
                                                      const QuantiseOptions& options);

/// Throws UsageError if a packed parameter is placed on a device.
void require_packed_on_host(const std::vector<PlacedTensor>& tensors);

/// Packs the parts on disk now, into a file in `folder`. Throws UsageError if there are some, and no folder.
void keep_packed_on_disk(packed::PackingSource& source, const Division& division, const std::filesystem::path& folder);

}  // namespace hortator::accelerator
