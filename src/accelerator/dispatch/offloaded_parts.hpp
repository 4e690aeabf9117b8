#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "accelerator/dispatch/placed_tensors.hpp"
#include "weights/filling.hpp"
#include "weights/weight_source.hpp"

namespace hortator::accelerator {

/// Parts of a module whose values are in an offload folder.
struct OffloadedParts {
  std::shared_ptr<const weights::WeightSource> source = {};
  std::vector<weights::Filling> fillings = {};
  std::vector<PlacedTensor> tensors = {};  ///< those of `fillings`, in its order
};

/// Takes those out of `tensors` that are placed on disk, have no values, and are in `folder`. Throws UsageError for one
/// that has another shape there.
OffloadedParts take_offloaded(std::vector<PlacedTensor>& tensors, const std::filesystem::path& folder);

}  // namespace hortator::accelerator
