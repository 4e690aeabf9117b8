#include "parallel/zero/shard_plan.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "support/catch.hpp"

using namespace hortator;
using parallel::ShardItem;
using parallel::ShardLimits;

namespace {

parallel::ArrayKind kind(std::size_t number) { return {.paged = number / 2 == 1, .frozen = number % 2 == 1}; }

/// Checks what holds for any plan: each element of each item has exactly one owner, ranks own the same number of bytes,
/// and everything begins on the grain.
void check_plan(const std::vector<ShardItem>& items, int ranks, const ShardLimits& limits) {
  const auto plan = parallel::plan_shards(items, ranks, limits);
  REQUIRE(plan.positions.size() == items.size());
  std::vector<int> seen(items.size(), 0);
  for (std::size_t f = 0; f < plan.flats.size(); ++f) {
    const auto& flat = plan.flats[f];
    CHECK(flat.elements % (ranks * limits.grain) == 0);
    std::int64_t end = 0;
    for (const auto item : flat.items) {
      ++seen[item];
      const auto& position = plan.positions[item];
      CHECK(position.flat == f);
      CHECK(position.offset >= end);
      CHECK(position.offset - end < limits.grain);
      CHECK(position.offset % limits.grain == 0);
      CHECK(position.elements == items[item].elements);
      CHECK(items[item].kind == flat.kind);
      end = position.offset + position.elements;
    }
    CHECK(end <= flat.elements);
    CHECK(flat.elements - end < (ranks + 1) * limits.grain);
    for (int rank = 0; rank < ranks; ++rank) CHECK(plan.part(f, rank).size() == plan.part_elements(f));
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto owned = plan.owned(i, rank);
      CHECK(owned.begin == next);
      CHECK(owned.end >= owned.begin);
      CHECK((owned.size() == 0 || owned.begin % limits.grain == 0));
      // within the rank's part of the array
      if (owned.size() > 0) {
        const auto& position = plan.positions[i];
        const auto part = plan.part(position.flat, rank);
        CHECK(position.offset + owned.begin >= part.begin);
        CHECK(position.offset + owned.end <= part.end);
      }
      next = owned.end;
    }
    CHECK(next == items[i].elements);
  }
}

}  // namespace

TEST_CASE("each element has one owner, and all ranks own the same number of bytes, whatever the items") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ShardItem> items(random() % 12);
    for (auto& item : items) {
      const std::int64_t sizes[] = {0, 1, 3, 63, 64, 65, 1000, 4097};
      item = {.elements = sizes[random() % 8], .element_bytes = random() % 2 == 0 ? 4 : 2, .kind = kind(random() % 3)};
    }
    for (const int ranks : {1, 2, 3, 4, 7}) {
      check_plan(items, ranks, {.first_bytes = 1, .bytes = 1, .grain = 1});
      check_plan(items, ranks, {.first_bytes = 100, .bytes = 5000, .grain = 64});
      check_plan(items, ranks, {});
    }
  }
}

TEST_CASE("arrays are closed at their limit, the first one early, and begin with the last items") {
  const std::vector<ShardItem> items(6, ShardItem{.elements = 100});
  const auto plan = parallel::plan_shards(items, 2, {.first_bytes = 400, .bytes = 800, .grain = 10});
  REQUIRE(plan.flats.size() == 4);
  CHECK(plan.flats[0].items == std::vector<std::size_t>{5});
  CHECK(plan.flats[1].items == std::vector<std::size_t>{4, 3});
  CHECK(plan.flats[2].items == std::vector<std::size_t>{2, 1});
  CHECK(plan.flats[3].items == std::vector<std::size_t>{0});
  CHECK(plan.owned(5, 0) == core::Range{0, 50});
  CHECK(plan.owned(5, 1) == core::Range{50, 100});
  CHECK(plan.owned(4, 1).size() == 0);
}

TEST_CASE("a part is cut within an item, on the grain; the remainder is padding") {
  const std::vector<ShardItem> items = {{.elements = 130}};
  const auto plan = parallel::plan_shards(items, 4);
  REQUIRE(plan.flats.size() == 1);
  CHECK(plan.flats[0].elements == 256);
  CHECK(plan.owned(0, 0) == core::Range{0, 64});
  CHECK(plan.owned(0, 2) == core::Range{128, 130});
  CHECK(plan.owned(0, 3) == core::Range{130, 130});
}

TEST_CASE("kinds do not mix") {
  const std::vector<ShardItem> items = {
      {.elements = 8, .kind = kind(1)}, {.elements = 8, .kind = kind(0)}, {.elements = 8, .kind = kind(1)}};
  const auto plan = parallel::plan_shards(items, 1);
  REQUIRE(plan.flats.size() == 2);
  std::map<parallel::ArrayKind, std::size_t> count;
  for (const auto& flat : plan.flats) count[flat.kind] += flat.items.size();
  CHECK(count[kind(0)] == 1);
  CHECK(count[kind(1)] == 2);
}

TEST_CASE("no items give no arrays") { CHECK(parallel::plan_shards({}, 3).flats.empty()); }
