#include "train/bucket_plan.hpp"

#include <map>

namespace hortator::train {
namespace {

struct OpenBucket {
  std::vector<int> items;
  std::int64_t bytes = 0;
};

}  // namespace

std::vector<std::vector<int>> plan_buckets(const std::vector<BucketItem>& items, const BucketLimits& limits) {
  std::vector<std::vector<int>> closed;
  std::map<int, OpenBucket> open;  // by kind
  for (int index = static_cast<int>(items.size()) - 1; index >= 0; --index) {
    const auto& item = items[static_cast<std::size_t>(index)];
    auto& bucket = open[item.kind];
    bucket.items.push_back(index);
    bucket.bytes += item.elements * item.element_bytes;
    if (bucket.bytes >= (closed.empty() ? limits.first_bytes : limits.bytes)) {
      closed.push_back(std::move(bucket.items));
      bucket = {};
    }
  }
  for (auto& [kind, bucket] : open) {
    if (!bucket.items.empty()) closed.push_back(std::move(bucket.items));
  }
  return closed;
}

}  // namespace hortator::train
