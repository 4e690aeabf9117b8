#pragma once

#include <hortator/bigmodel/dispatch.hpp>
#include <optional>
#include <vector>

#include "accelerator/dispatch/placed_tensors.hpp"

namespace hortator::accelerator {

/// Where the parts of a model go, and how much of those on disk is in memory at a time.
struct DispatchPlan {
  DeviceMap map = {};
  /// Memory for pages; nothing: what reading ahead needs.
  std::optional<Bytes> room = {};
  Bytes page_bytes = 0;
};

/// Puts the places into `tensors`. Where a rule deals them, parts that are used from disk have room for two layers at
/// once within the CPU's limit, so that one is read while the other is at work. A limit that not even one layer fits in
/// is warned of. Throws UsageError for a map that is none of this module.
DispatchPlan plan_dispatch(const torch::nn::Module& module, std::vector<PlacedTensor>& tensors, const MaxMemory& memory,
                           const LoadAndDispatchOptions& options);

}  // namespace hortator::accelerator
