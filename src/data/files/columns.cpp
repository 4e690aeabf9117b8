#include "data/files/columns.hpp"

#include <set>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {

std::int64_t common_rows(const std::vector<ColumnLength>& columns, const std::filesystem::path& path) {
  if (columns.empty()) throw UsageError({.what = text::concat("No columns of ", path, " were chosen")});
  const auto& first = columns.front();
  std::set<std::string> names;
  for (const auto& column : columns) {
    if (!names.insert(column.name).second)
      throw UsageError({.what = text::concat("The column ", text::quote(column.name), " is named twice")});
    if (column.rows == first.rows) continue;
    throw formats::FileError({.what = text::concat(text::quote(first.name), " of ", path, " has ", first.rows,
                                                   " rows, ", text::quote(column.name), " has ", column.rows),
                              .why = "a sample is one row of each"});
  }
  return first.rows;
}

std::map<std::string, at::Tensor> first_row(const std::map<std::string, at::Tensor>& batch) {
  std::map<std::string, at::Tensor> row;
  for (const auto& [name, tensor] : batch) row[name] = tensor[0];
  return row;
}

}  // namespace hortator::data
