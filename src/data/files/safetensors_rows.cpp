#include <hortator/datasets/safetensors_rows.hpp>

#include "data/files/rows.hpp"
#include "formats/safetensors/source.hpp"

namespace hortator {

namespace data {

struct SafetensorsTable {
  SafetensorsTable(const std::filesystem::path& path, const std::vector<std::string>& chosen)
      : source(path), names(chosen.empty() ? source.names() : chosen) {
    std::vector<ColumnLength> lengths;
    for (const auto& name : names) {
      columns.push_back(source.rows(name));
      lengths.push_back({.name = name, .rows = columns.back().rows});
    }
    rows = common_rows(lengths, path);
  }

  formats::SafetensorsSource source;
  std::vector<std::string> names;
  std::vector<formats::StoredRows> columns = {};
  std::int64_t rows = 0;
};

}  // namespace data

SafetensorsRows::SafetensorsRows(const std::filesystem::path& path, const std::vector<std::string>& names)
    : table_(std::make_shared<const data::SafetensorsTable>(path, names)) {}

std::int64_t SafetensorsRows::size() const { return table_->rows; }
std::vector<std::string> SafetensorsRows::columns() const { return table_->names; }

std::map<std::string, at::Tensor> SafetensorsRows::get(std::int64_t row) const {
  return data::first_row(get_batch({&row, 1}));
}

std::map<std::string, at::Tensor> SafetensorsRows::get_batch(std::span<const std::int64_t> rows) const {
  const auto& file = table_->source.file();
  data::require_samples(rows, table_->rows, file.path());
  std::map<std::string, at::Tensor> batch;
  for (std::size_t i = 0; i < table_->names.size(); ++i)
    batch[table_->names[i]] = formats::read_rows(file, table_->columns[i], rows);
  file.require_unchanged();
  return batch;
}

}  // namespace hortator
