#include "train/bucket_plan.hpp"

#include <algorithm>

#include "support/catch.hpp"

using namespace hortator::train;

TEST_CASE("every gradient is in exactly one bucket, buckets hold one kind and close at their limit") {
  const BucketLimits limits{.first_bytes = 64, .bytes = 256};
  for (int count = 0; count <= 40; ++count) {
    std::vector<BucketItem> items;
    for (int i = 0; i < count; ++i)
      items.push_back({.elements = 1 + (i * 7) % 23, .element_bytes = 4, .kind = i % 3 == 0 ? 1 : 0});
    const auto buckets = plan_buckets(items, limits);
    std::vector<int> seen(items.size(), 0);
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const auto& bucket = buckets[b];
      REQUIRE_FALSE(bucket.empty());
      CHECK(std::is_sorted(bucket.rbegin(), bucket.rend()));
      std::int64_t bytes = 0;
      for (const int index : bucket) {
        const auto& item = items[static_cast<std::size_t>(index)];
        ++seen[static_cast<std::size_t>(index)];
        CHECK(item.kind == items[static_cast<std::size_t>(bucket.front())].kind);
        bytes += item.elements * item.element_bytes;
      }
      // Without its last item a bucket was still open.
      const auto& last = items[static_cast<std::size_t>(bucket.back())];
      CHECK(bytes - last.elements * last.element_bytes < (b == 0 ? limits.first_bytes : limits.bytes));
    }
    CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  }
}

TEST_CASE("the first bucket is small, and the last parameters come first") {
  const std::vector<BucketItem> items(10, BucketItem{.elements = 100, .element_bytes = 4});
  const auto buckets = plan_buckets(items, {.first_bytes = 400, .bytes = 1600});
  REQUIRE(buckets.size() == 4);
  CHECK(buckets[0] == std::vector<int>{9});
  CHECK(buckets[1] == std::vector<int>{8, 7, 6, 5});
  CHECK(buckets[3] == std::vector<int>{0});
}
