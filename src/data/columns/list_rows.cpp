#include "data/columns/list_rows.hpp"

#include <vector>

namespace hortator::data {

std::optional<at::Tensor> rows_of(const formats::ColumnValues& column, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> shape = {count};
  auto begin = first, end = first + count;
  for (const auto& offsets : column.offsets) {
    const auto at = [&](std::int64_t list) { return offsets.at(static_cast<std::size_t>(list)); };
    const auto length = begin == end ? 0 : at(begin + 1) - at(begin);
    for (auto list = begin; list < end; ++list)
      if (at(list + 1) - at(list) != length) return {};
    shape.push_back(length);
    const auto entries = at(begin);
    end = at(end);
    begin = entries;
  }
  return column.numbers.narrow(0, begin, end - begin).view(shape);
}

}  // namespace hortator::data
