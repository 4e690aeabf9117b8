#include "machine/memory/huge_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hortator::machine {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::byte* end_of(MemoryArea area) { return area.data() + area.size(); }

/// The whole pages that an area touches. Its first and last page may have bytes of others, which the wish does not
/// harm.
MemoryArea whole_pages(MemoryArea area, std::size_t page) {
  const auto before = reinterpret_cast<std::uintptr_t>(area.data()) % page;
  const auto bytes = before + area.size();
  return {area.data() - before, (bytes + page - 1) / page * page};
}

}  // namespace

std::vector<MemoryArea> joined_areas(std::vector<MemoryArea> areas, std::size_t page, std::size_t huge_page) {
  std::ranges::sort(areas, {}, [](MemoryArea area) { return area.data(); });
  std::vector<MemoryArea> joined;
  for (const auto& area : areas) {
    if (!joined.empty() && area.data() <= end_of(joined.back()) + page) {
      const auto end = std::max(end_of(joined.back()), end_of(area));
      joined.back() = {joined.back().data(), end};
    } else {
      joined.push_back(area);
    }
  }
  std::erase_if(joined, [&](MemoryArea area) { return area.size() < huge_page; });
  return joined;
}

void prefer_huge_pages(std::vector<MemoryArea> areas) {
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const auto& area : joined_areas(std::move(areas), page, huge_page_bytes)) {
    const auto pages = whole_pages(area, page);
    ::madvise(pages.data(), pages.size(), MADV_HUGEPAGE);
  }
#endif
}

}  // namespace hortator::machine
