#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <compare>
#include <cstdint>
#include <vector>

/// Which gradients travel together.
namespace hortator::parallel {

/// What gradients must have in common to share a bucket.
struct BucketKind {
  at::ScalarType type = at::kFloat;
  c10::DeviceIndex device = -1;  ///< on CPUs -1
  bool is_of_experts = false;    ///< averaged over the ranks that hold the same experts

  auto operator<=>(const BucketKind&) const = default;
};

struct BucketItem {
  std::int64_t elements = 0;
  std::int64_t element_bytes = 4;
  BucketKind kind = {};
};

struct BucketLimits {
  std::int64_t first_bytes = std::int64_t{1} << 20;  ///< small, so that communication starts early in the backward pass
  std::int64_t bytes = std::int64_t{25} << 20;
};

/// An order of all indices below `count`: first those that `arrived`, in their order, then the others from the last to
/// the first, the order in which backward usually makes gradients.
std::vector<int> arrival_order(const std::vector<int>& arrived, int count);

/// Returns the indices of the items of each bucket. Items are taken in `order`, which has each of them once; a bucket
/// is closed when it holds its limit. Every item is in exactly one bucket. Buckets are in the order in which they fill.
std::vector<std::vector<int>> plan_buckets(const std::vector<BucketItem>& items, const std::vector<int>& order,
                                           const BucketLimits& limits);

}  // namespace hortator::parallel
