#pragma once

#include <hortator/bigmodel/dispatch.hpp>
#include <optional>
#include <vector>

#include "accelerator/dispatch/placed_tensors.hpp"

namespace hortator::accelerator {

/// Where a model's parts are placed, and how much of the parts on disk is in memory at a time.
struct DispatchPlan {
  DeviceMap map = {};
  /// Memory for pages; by default what reading ahead needs.
  std::optional<Bytes> room = {};
  Bytes page_bytes = 0;
};

/// The size of pages for the parts on disk among `tensors`, with at most `room` bytes of memory for them.
Bytes page_bytes_for(const std::vector<PlacedTensor>& tensors, std::optional<Bytes> room);

/// Plans where `tensors` are placed, and sets their places. If a rule distributes them, the CPU's limit leaves room for
/// two layers of the parts on disk, so that one is read while the other computes. Warns if not even one layer fits into
/// the limit. UsageError for a map that does not match the module.
DispatchPlan plan_dispatch(const torch::nn::Module& module, std::vector<PlacedTensor>& tensors, const MaxMemory& memory,
                           const LoadAndDispatchOptions& options);

}  // namespace hortator::accelerator
