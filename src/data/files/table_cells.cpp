#include "data/files/table_cells.hpp"

#include <charconv>

#include "core/text/text.hpp"

namespace hortator::data {
namespace {

std::string_view trimmed(std::string_view cell) {
  constexpr std::string_view spaces = " \t";
  const auto begin = cell.find_first_not_of(spaces);
  if (begin == std::string_view::npos) return {};
  return cell.substr(begin, cell.find_last_not_of(spaces) - begin + 1);
}

template <typename Number>
bool parse_number(std::string_view cell, void* element) {
  const auto* end = cell.data() + cell.size();
  const auto result = std::from_chars(cell.data(), end, *static_cast<Number*>(element));
  return result.ec == std::errc() && result.ptr == end;
}

bool parse_boolean(std::string_view cell, void* element) {
  const auto value = text::parse_bool(cell);
  if (value) *static_cast<bool*>(element) = *value;
  return value.has_value();
}

}  // namespace

std::string_view name_of(ColumnType type) {
  switch (type) {
    case ColumnType::float32:
      return "float32";
    case ColumnType::float64:
      return "float64";
    case ColumnType::int64:
      return "int64";
    case ColumnType::boolean:
      return "boolean";
    default:
      return "text";
  }
}

at::ScalarType scalar_type_of(ColumnType type) {
  switch (type) {
    case ColumnType::float32:
      return at::kFloat;
    case ColumnType::float64:
      return at::kDouble;
    case ColumnType::int64:
      return at::kLong;
    case ColumnType::boolean:
      return at::kBool;
    default:
      return at::ScalarType::Undefined;
  }
}

bool parse_cell(std::string_view cell, ColumnType type, void* element) {
  cell = trimmed(cell);
  switch (type) {
    case ColumnType::float32:
      return parse_number<float>(cell, element);
    case ColumnType::float64:
      return parse_number<double>(cell, element);
    case ColumnType::int64:
      return parse_number<std::int64_t>(cell, element);
    case ColumnType::boolean:
      return parse_boolean(cell, element);
    default:
      return false;
  }
}

TableRow first_row(const TableBatch& batch) {
  TableRow row;
  for (const auto& [name, tensor] : batch.tensors) row.tensors[name] = tensor[0];
  for (const auto& [name, texts] : batch.texts) row.texts[name] = texts.front();
  return row;
}

}  // namespace hortator::data
