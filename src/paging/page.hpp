#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hortator::paging {

/// Where a storage lies in a page.
struct PagePosition {
  int storage = 0;         ///< its number among the paged storages
  std::size_t offset = 0;  ///< in the frame
  std::size_t bytes = 0;
};

/// The unit of paging: the bytes of some storages, side by side in one frame.
struct Page {
  int number = 0;
  std::vector<PagePosition> positions = {};  ///< by their offsets
  std::size_t bytes = 0;                     ///< of the frame, alignment gaps included
};

/// A storage, as the planner sees it.
struct PageItem {
  std::size_t bytes = 0;
  int kind = 0;  ///< only storages of one kind share a page; for example its type, or whether it is trained
};

struct PagePlan {
  std::size_t page_bytes = std::size_t{16} << 20;  ///< at most, except for a larger storage
  std::size_t alignment = 64;                      ///< of each storage in its page
  std::size_t granule_bytes = 64;                  ///< a page's bytes are a multiple of this, so that shards are equal
};

/// Distributes storages over pages in the given order (numbers of `items`, each once): neighbours share a page as long
/// as they fit and are of one kind. Pure.
std::vector<Page> plan_pages(std::span<const PageItem> items, std::span<const int> order, const PagePlan& plan);

}  // namespace hortator::paging
