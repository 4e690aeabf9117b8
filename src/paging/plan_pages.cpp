#include "paging/page.hpp"

namespace hortator::paging {
namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

std::vector<Page> plan_pages(std::span<const PageItem> items, std::span<const int> order, const PagePlan& plan) {
  std::vector<Page> pages;
  int kind = 0;
  for (const int storage : order) {
    const auto& item = items[static_cast<std::size_t>(storage)];
    const auto offset = pages.empty() ? 0 : rounded_up(pages.back().bytes, plan.alignment);
    if (pages.empty() || item.kind != kind || offset + item.bytes > plan.page_bytes) {
      pages.push_back({.number = static_cast<int>(pages.size())});
    }
    auto& page = pages.back();
    page.positions.push_back({.storage = storage, .offset = page.positions.empty() ? 0 : offset, .bytes = item.bytes});
    page.bytes = page.positions.back().offset + item.bytes;
    kind = item.kind;
  }
  for (auto& page : pages) page.bytes = rounded_up(page.bytes, plan.granule_bytes);
  return pages;
}

}  // namespace hortator::paging
