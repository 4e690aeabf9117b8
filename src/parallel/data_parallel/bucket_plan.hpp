#pragma once

#include <cstdint>
#include <vector>

/// Which gradients travel together.
namespace hortator::parallel {

struct BucketItem {
  std::int64_t elements = 0;
  std::int64_t element_bytes = 4;
  int kind = 0;  ///< items of different kinds (type, device) cannot share a bucket
};

struct BucketLimits {
  std::int64_t first_bytes = std::int64_t{1} << 20;  ///< small, so that communication starts early in the backward pass
  std::int64_t bytes = std::int64_t{25} << 20;
};

/// An order of all indices below `count`: those that `arrived`, as they did, then the others from the last to the
/// first, the order in which backward makes gradients as a rule.
std::vector<int> arrival_order(const std::vector<int>& arrived, int count);

/// Indices of the items of each bucket. Items are taken in `order`, which names each of them once; a bucket is closed
/// once it holds its limit. Every item is in exactly one bucket. Buckets are in the order in which they fill.
std::vector<std::vector<int>> plan_buckets(const std::vector<BucketItem>& items, const std::vector<int>& order,
                                           const BucketLimits& limits);

}  // namespace hortator::parallel
