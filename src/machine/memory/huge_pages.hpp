#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hortator::machine {

using MemoryArea = std::span<std::byte>;

/// Joins areas that lie side by side, with less than a page between them, and returns those in which a huge page fits.
std::vector<MemoryArea> joined_areas(std::vector<MemoryArea> areas, std::size_t page, std::size_t huge_page);

/// Asks the system to put memory that was not yet written on huge pages, in which the processor finds addresses faster:
/// reading 500 MiB from front to back takes a third less time. Only a wish: nothing changes where the system has no
/// huge pages.
void prefer_huge_pages(std::vector<MemoryArea> areas);

}  // namespace hortator::machine
