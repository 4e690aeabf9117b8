#include "data/files/rows.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <hortator/datasets/tensor_dataset.hpp>
#include <hortator/error.hpp>
#include <set>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {

void require_samples(std::span<const std::int64_t> samples, std::int64_t size, const std::filesystem::path& path) {
  for (const auto sample : samples) {
    if (sample >= 0 && sample < size) continue;
    throw UsageError({.what = text::concat(path, " has no sample ", sample, ": it has ", size)});
  }
}

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

std::int64_t common_rows(std::span<const at::Tensor> tensors) {
  for (const auto& tensor : tensors) {
    if (tensor.dim() == 0) throw UsageError({.what = "A tensor of a data set is a single number: it has no rows"});
    if (tensor.size(0) == tensors[0].size(0)) continue;
    throw UsageError(
        {.what = text::concat("The tensors of a data set have ", tensors[0].size(0), " and ", tensor.size(0), " rows"),
         .why = "a sample is one row of each"});
  }
  return tensors[0].size(0);
}

at::Tensor rows_at(const at::Tensor& tensor, std::span<const std::int64_t> rows) {
  // index_select only reads the index.
  auto* numbers = const_cast<std::int64_t*>(rows.data());
  const auto index = at::from_blob(numbers, {static_cast<std::int64_t>(rows.size())}, at::TensorOptions(at::kLong));
  return tensor.index_select(0, index);
}

}  // namespace hortator::data
