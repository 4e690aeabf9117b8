#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hortator::formats {

/// Calls `read(at, first, count)` for each run of consecutive row numbers, where rows[at] is `first`.
template <typename Read>
void for_each_run(std::span<const std::int64_t> rows, const Read& read) {
  for (std::size_t begin = 0; begin < rows.size();) {
    auto end = begin + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    read(begin, rows[begin], static_cast<std::int64_t>(end - begin));
    begin = end;
  }
}

}  // namespace hortator::formats
