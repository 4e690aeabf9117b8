#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <vector>

namespace hortator::machine {

/// New memory of these sizes, side by side on huge pages where the system has them, in which the processor finds
/// addresses faster: reading 500 MiB from front to back takes half the time. Each piece has whole pages of its own and
/// is given back alone. Empty if the system refuses the memory.
std::vector<at::DataPtr> memory_on_huge_pages(const std::vector<std::size_t>& sizes);

}  // namespace hortator::machine
