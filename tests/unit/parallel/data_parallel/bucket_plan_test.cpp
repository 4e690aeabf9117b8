#include "parallel/data_parallel/bucket_plan.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "support/catch.hpp"

using namespace hortator;

namespace {

parallel::BucketKind kind_number(int number) { return {.device = static_cast<c10::DeviceIndex>(number)}; }

std::int64_t bytes_of(const std::vector<parallel::BucketItem>& items, const std::vector<int>& bucket) {
  std::int64_t bytes = 0;
  for (const int i : bucket)
    bytes += items[static_cast<std::size_t>(i)].elements * items[static_cast<std::size_t>(i)].element_bytes;
  return bytes;
}

std::vector<parallel::BucketItem> make_items(int count, int kinds) {
  std::vector<parallel::BucketItem> items;
  for (int i = 0; i < count; ++i)
    items.push_back(
        {.elements = 1 + (i * 7) % 23, .element_bytes = i % 2 == 0 ? 4 : 2, .kind = kind_number((i * i) % kinds)});
  return items;
}

void check_plan(const std::vector<parallel::BucketItem>& items, const std::vector<int>& order,
                const parallel::BucketLimits& limits) {
  std::vector<std::size_t> position(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[static_cast<std::size_t>(order[i])] = i;
  const auto at = [&](int item) { return position[static_cast<std::size_t>(item)]; };

  const auto buckets = parallel::plan_buckets(items, order, limits);
  std::multiset<int> seen;
  std::set<parallel::BucketKind> unfilled;  // kinds whose last bucket is below its limit
  std::size_t last_of_previous = 0;
  std::int64_t filled = 0;
  for (const auto& bucket : buckets) {
    REQUIRE_FALSE(bucket.empty());
    seen.insert(bucket.begin(), bucket.end());
    const auto kind = items[static_cast<std::size_t>(bucket.front())].kind;
    for (const int i : bucket) CHECK(items[static_cast<std::size_t>(i)].kind == kind);
    // In the order of arrival, within a bucket and from one to the next that is full.
    CHECK(std::is_sorted(bucket.begin(), bucket.end(), [&](int a, int b) { return at(a) < at(b); }));
    CHECK(at(bucket.back()) >= last_of_previous);
    last_of_previous = at(bucket.back());
    // Without its last item a bucket is below the limit; only the last bucket of a kind may stay below it.
    CHECK(unfilled.count(kind) == 0);
    auto without_last = bucket;
    without_last.pop_back();
    CHECK(bytes_of(items, without_last) < limits.bytes);
    if (bytes_of(items, bucket) < (filled == 0 ? limits.first_bytes : limits.bytes)) {
      unfilled.insert(kind);
    } else {
      ++filled;
    }
  }
  CHECK(seen.size() == items.size());
  CHECK(std::set<int>(seen.begin(), seen.end()).size() == items.size());
}

}  // namespace

TEST_CASE("every gradient is in one bucket of its kind, in the order of arrival, and buckets close at their limit") {
  std::mt19937 shuffle(1);
  for (const parallel::BucketLimits limits : {parallel::BucketLimits{1, 1}, parallel::BucketLimits{64, 256},
                                              parallel::BucketLimits{30, 30}, parallel::BucketLimits{}}) {
    for (int count = 0; count <= 40; ++count) {
      for (const int kinds : {1, 2, 5}) {
        std::vector<int> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        for (int round = 0; round < 3; ++round) {
          check_plan(make_items(count, kinds), order, limits);
          std::shuffle(order.begin(), order.end(), shuffle);
        }
      }
    }
  }
}

TEST_CASE("the first bucket is small and holds the gradients that arrive first") {
  const std::vector<parallel::BucketItem> items(10, parallel::BucketItem{.elements = 100, .element_bytes = 4});
  const auto buckets =
      parallel::plan_buckets(items, {3, 9, 8, 7, 6, 5, 4, 2, 1, 0}, {.first_bytes = 400, .bytes = 1600});
  REQUIRE(buckets.size() == 4);
  CHECK(buckets[0] == std::vector<int>{3});
  CHECK(buckets[1] == std::vector<int>{9, 8, 7, 6});
  CHECK(buckets[3] == std::vector<int>{0});
}

TEST_CASE("a bucket that stays open is ordered by its last gradient, not after all others") {
  std::vector<parallel::BucketItem> items(4, parallel::BucketItem{.elements = 1, .element_bytes = 8});
  items[3].kind = kind_number(1);  // the only one of its kind, and first
  const auto buckets = parallel::plan_buckets(items, {3, 2, 1, 0}, {.first_bytes = 16, .bytes = 16});
  CHECK(buckets == std::vector<std::vector<int>>{{3}, {2, 1}, {0}});
}

TEST_CASE("gradients that have not arrived come last, from the last to the first") {
  CHECK(parallel::arrival_order({2, 0}, 5) == std::vector<int>{2, 0, 4, 3, 1});
  CHECK(parallel::arrival_order({}, 3) == std::vector<int>{2, 1, 0});
  CHECK(parallel::arrival_order({1, 0}, 2) == std::vector<int>{1, 0});
  CHECK(parallel::arrival_order({}, 0).empty());
}
