#include <algorithm>
#include <hortator/datasets/hdf5_rows.hpp>

#include "data/files/rows.hpp"
#include "formats/file/fixed_file.hpp"
#include "formats/hdf5/column.hpp"
#include "formats/hdf5/file.hpp"

namespace hortator {

namespace data {

struct Hdf5TableFile {
  Hdf5TableFile(const std::filesystem::path& path, const std::vector<std::string>& datasets,
                const Hdf5RowsOptions& options)
      : watched(path), file(formats::open_file(path)), names(datasets) {
    std::vector<ColumnLength> lengths;
    for (const auto& name : names) {
      columns.emplace_back(file, watched, name, options.cache_bytes);
      lengths.push_back({.name = name, .rows = columns.back().rows()});
      chunk_length = std::max(chunk_length, columns.back().chunk_rows());
    }
    rows = common_rows(lengths, path);
  }

  formats::FixedFile watched;
  formats::File file;
  std::vector<std::string> names;
  std::vector<formats::Hdf5Column> columns = {};
  std::int64_t rows = 0;
  std::int64_t chunk_length = 1;
};

}  // namespace data

Hdf5Rows::Hdf5Rows(const std::filesystem::path& path, const std::vector<std::string>& datasets,
                   const Hdf5RowsOptions& options)
    : table_(std::make_shared<const data::Hdf5TableFile>(path, datasets, options)) {}

std::int64_t Hdf5Rows::size() const { return table_->rows; }
std::vector<std::string> Hdf5Rows::columns() const { return table_->names; }
std::int64_t Hdf5Rows::chunk_length() const { return table_->chunk_length; }

std::map<std::string, at::Tensor> Hdf5Rows::get(std::int64_t row) const {
  return data::first_row(get_batch({&row, 1}));
}

std::map<std::string, at::Tensor> Hdf5Rows::get_batch(std::span<const std::int64_t> rows) const {
  data::require_samples(rows, table_->rows, table_->watched.path());
  std::map<std::string, at::Tensor> batch;
  for (std::size_t i = 0; i < table_->names.size(); ++i) batch[table_->names[i]] = table_->columns[i].read(rows);
  table_->watched.require_unchanged();
  return batch;
}

}  // namespace hortator
