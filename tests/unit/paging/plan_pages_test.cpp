#include <numeric>
#include <set>

#include "paging/stores/paged_storages.hpp"
#include "support/catch.hpp"

namespace hortator::paging {
namespace {

std::vector<Page> plan(const std::vector<PageItem>& items, const PagePlan& plan) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  return plan_pages(items, order, plan);
}

std::vector<std::vector<int>> storages_of(const std::vector<Page>& pages) {
  std::vector<std::vector<int>> all;
  for (const auto& page : pages) {
    all.emplace_back();
    for (const auto& position : page.positions) all.back().push_back(position.storage);
  }
  return all;
}

}  // namespace

TEST_CASE("Neighbours share a page as long as they fit", "[plan_pages]") {
  const auto pages = plan({{.bytes = 100}, {.bytes = 100}, {.bytes = 100}}, {.page_bytes = 256});
  CHECK(storages_of(pages) == std::vector<std::vector<int>>{{0, 1}, {2}});
  CHECK(pages[0].positions[1].offset == 128);  // aligned to 64
  CHECK(pages[0].bytes == 256);                // 228, in whole granules of 64
  CHECK(pages[1].number == 1);
}

TEST_CASE("A storage that is larger than a page is a page of its own", "[plan_pages]") {
  const auto pages = plan({{.bytes = 10}, {.bytes = 1000}, {.bytes = 10}}, {.page_bytes = 256});
  CHECK(storages_of(pages) == std::vector<std::vector<int>>{{0}, {1}, {2}});
  CHECK(pages[1].bytes == 1024);
}

TEST_CASE("Kinds do not share pages", "[plan_pages]") {
  const auto pages = plan({{.bytes = 8, .kind = 1}, {.bytes = 8, .kind = 2}, {.bytes = 8, .kind = 2}}, {});
  CHECK(storages_of(pages) == std::vector<std::vector<int>>{{0}, {1, 2}});
}

TEST_CASE("Pages follow the caller's order", "[plan_pages]") {
  const std::vector<PageItem> items(4, {.bytes = 64});
  CHECK(storages_of(plan_pages(items, std::vector<int>{3, 1, 0, 2}, {.page_bytes = 128})) ==
        std::vector<std::vector<int>>{{3, 1}, {0, 2}});
}

TEST_CASE("Whatever the sizes: each storage once, no overlap, sizes are multiples of the granule", "[plan_pages]") {
  std::vector<PageItem> items;
  for (std::size_t i = 0; i < 500; ++i)
    items.push_back({.bytes = 1 + (i * 7919) % 3000, .kind = static_cast<int>(i / 90)});
  const PagePlan options = {.page_bytes = 4096, .alignment = 32, .granule_bytes = 96};
  std::set<int> seen;
  for (const auto& page : plan(items, options)) {
    std::size_t end = 0;
    for (const auto& position : page.positions) {
      const bool is_well_placed = position.offset >= end && position.offset % 32 == 0;
      CHECK(is_well_placed);
      CHECK(seen.insert(position.storage).second);
      CHECK(items[static_cast<std::size_t>(position.storage)].kind ==
            items[static_cast<std::size_t>(page.positions.front().storage)].kind);
      end = position.offset + position.bytes;
    }
    CHECK(page.bytes >= end);
    CHECK(page.bytes % 96 == 0);
    CHECK(page.bytes < end + 96);
  }
  CHECK(seen.size() == items.size());
}

}  // namespace hortator::paging
