#include "formats/columns/columnar_file.hpp"

#include <c10/core/ScalarType.h>

#include "core/text/text.hpp"

namespace hortator::formats {

std::string to_string(const ColumnSpec& column) {
  std::string text;
  for (std::size_t level = 0; level < column.depth; ++level) text += "lists of ";
  return text + (column.type ? c10::toString(*column.type) : "text");
}

std::size_t ColumnValues::bytes() const {
  std::size_t sum = numbers.defined() ? numbers.nbytes() : 0;
  for (const auto& text : texts) sum += sizeof(std::string) + (text.size() > 15 ? text.capacity() : 0);
  for (const auto& level : offsets) sum += level.size() * sizeof(level[0]);
  return sum;
}

}  // namespace hortator::formats
