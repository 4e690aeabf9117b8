#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hortator::paging {

/// What comes and goes as one: the bytes of some storages, side by side in one frame.
struct Page {
  struct Place {
    int storage = 0;         ///< by its number among the paged storages
    std::size_t offset = 0;  ///< in the frame
    std::size_t bytes = 0;
  };

  int number = 0;
  std::vector<Place> places = {};  ///< by their offsets
  std::size_t bytes = 0;           ///< of the frame, with the gaps of alignment
};

/// A storage as far as the planner cares.
struct PageItem {
  std::size_t bytes = 0;
  int kind = 0;  ///< only storages of one kind share a page: its type, say, or whether it is trained
};

struct PagePlan {
  std::size_t page_bytes = std::size_t{16} << 20;  ///< at most, except for a storage that is larger itself
  std::size_t alignment = 64;                      ///< of each storage in its page
  std::size_t granule_bytes = 64;  ///< a page's bytes are a multiple of this: what shards come out equal
};

/// Deals storages to pages in the given order (numbers of `items`, each once): neighbours share one as long as they fit
/// and are of one kind. Pure.
std::vector<Page> plan_pages(std::span<const PageItem> items, std::span<const int> order, const PagePlan& plan);

}  // namespace hortator::paging
