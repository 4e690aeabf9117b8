#include "parallel/data_parallel/bucket_plan.hpp"

#include <algorithm>
#include <map>

namespace hortator::parallel {
namespace {

struct Bucket {
  std::vector<int> items;
  std::int64_t bytes = 0;
  std::size_t last = 0;  ///< position in the order of the last item
};

}  // namespace

std::vector<int> arrival_order(const std::vector<int>& arrived, int count) {
  auto order = arrived;
  std::vector<bool> is_there(static_cast<std::size_t>(count), false);
  for (const int index : arrived) is_there[static_cast<std::size_t>(index)] = true;
  for (int index = count - 1; index >= 0; --index) {
    if (!is_there[static_cast<std::size_t>(index)]) order.push_back(index);
  }
  return order;
}

std::vector<std::vector<int>> plan_buckets(const std::vector<BucketItem>& items, const std::vector<int>& order,
                                           const BucketLimits& limits) {
  std::vector<Bucket> closed;
  std::map<BucketKind, Bucket> open;  // by kind
  for (std::size_t position = 0; position < order.size(); ++position) {
    const auto& item = items[static_cast<std::size_t>(order[position])];
    auto& bucket = open[item.kind];
    bucket.items.push_back(order[position]);
    bucket.bytes += item.elements * item.element_bytes;
    bucket.last = position;
    if (bucket.bytes >= (closed.empty() ? limits.first_bytes : limits.bytes)) {
      closed.push_back(std::move(bucket));
      open.erase(item.kind);
    }
  }
  for (auto& [kind, bucket] : open) closed.push_back(std::move(bucket));
  std::sort(closed.begin(), closed.end(), [](const Bucket& a, const Bucket& b) { return a.last < b.last; });
  std::vector<std::vector<int>> buckets;
  for (auto& bucket : closed) buckets.push_back(std::move(bucket.items));
  return buckets;
}

}  // namespace hortator::parallel
