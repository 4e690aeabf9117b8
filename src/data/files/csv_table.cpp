#include <ATen/ops/empty.h>

#include <algorithm>
#include <hortator/datasets/csv_rows.hpp>
#include <set>

#include "core/text/csv.hpp"
#include "core/text/text.hpp"
#include "data/files/csv_scanner.hpp"
#include "data/files/record_file.hpp"
#include "data/files/table_cells.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {

/// A file of separated values and the columns to read.
class CsvTable {
 public:
  CsvTable(const std::filesystem::path& path, const CsvOptions& options);

  std::int64_t size() const { return records_.size(); }
  std::vector<std::string> columns() const;
  TableBatch read(std::span<const std::int64_t> rows) const;

 private:
  struct ChosenColumn {
    TableColumn column;
    std::size_t index;  ///< among the file's columns
  };

  std::vector<std::string> scan();
  void choose(const std::vector<TableColumn>& columns, const std::vector<std::string>& header);
  [[noreturn]] void refuse_cell(std::int64_t row, const ChosenColumn& chosen, const std::string& cell) const;

  RecordFile records_;
  char separator_;
  std::vector<ChosenColumn> chosen_;
};

namespace {

using formats::FileError;

char separator_of(const std::filesystem::path& path, const CsvOptions& options) {
  return options.separator.value_or(path.extension() == ".tsv" ? '\t' : ',');
}

std::vector<TableColumn> all_of(const std::vector<std::string>& header) {
  std::vector<TableColumn> columns;
  for (const auto& name : header) columns.push_back({.name = name});
  return columns;
}

}  // namespace

CsvTable::CsvTable(const std::filesystem::path& path, const CsvOptions& options)
    : records_(path), separator_(separator_of(path, options)) {
  const auto header = scan();
  choose(options.columns.empty() ? all_of(header) : options.columns, header);
}

// Returns the names in the first line. The other lines become the records.
std::vector<std::string> CsvTable::scan() {
  CsvScanner scanner(separator_);
  try {
    records_.scan([&](std::uint64_t, std::string_view piece) { scanner.feed(piece); });
    scanner.finish();
  } catch (const CsvFault& fault) {
    throw FileError({.what = text::concat(position_text(records_.path(), fault.line()), ": ", fault.what())});
  }
  auto begins = std::move(scanner).begins();
  if (begins.empty())
    throw FileError({.what = text::concat(records_.path(), " is empty"), .why = "its first line names the columns"});
  records_.set_records({begins.front()});
  constexpr std::int64_t first = 0;
  auto header = core::parse_csv_record(records_.read({&first, 1}).front(), separator_);
  begins.erase(begins.begin());
  records_.set_records(std::move(begins));
  return header;
}

void CsvTable::choose(const std::vector<TableColumn>& columns, const std::vector<std::string>& header) {
  if (const std::set<std::string> names(header.begin(), header.end()); names.size() < header.size())
    throw FileError({.what = text::concat(records_.path(), " names a column twice: ", text::join(header))});
  for (const auto& column : columns) {
    const auto found = std::ranges::find(header, column.name);
    if (found == header.end()) {
      throw UsageError({.what = text::concat(records_.path(), " has no column ", text::quote(column.name)),
                        .hint = text::suggestion(column.name, header)});
    }
    chosen_.push_back({.column = column, .index = static_cast<std::size_t>(found - header.begin())});
  }
}

std::vector<std::string> CsvTable::columns() const {
  std::vector<std::string> names;
  for (const auto& chosen : chosen_) names.push_back(chosen.column.name);
  return names;
}

void CsvTable::refuse_cell(std::int64_t row, const ChosenColumn& chosen, const std::string& cell) const {
  const bool missing = cell.find_first_not_of(" \t") == std::string::npos;
  throw FileError({.what = text::concat(records_.position_text(row), ": the column ", text::quote(chosen.column.name),
                                        missing ? " is empty" : text::concat(" has ", text::quote(cell))),
                   .why = text::concat("it is read as ", name_of(chosen.column.type))});
}

TableBatch CsvTable::read(std::span<const std::int64_t> rows) const {
  const auto records = records_.read(rows);
  TableBatch batch;
  std::vector<std::byte*> elements;  // where the next element of each column is written
  for (const auto& [column, index] : chosen_) {
    if (column.type == ColumnType::text) {
      batch.texts[column.name].reserve(rows.size());
      elements.push_back(nullptr);
      continue;
    }
    const auto tensor = at::empty({static_cast<std::int64_t>(rows.size())}, scalar_type_of(column.type));
    batch.tensors[column.name] = tensor;
    elements.push_back(static_cast<std::byte*>(tensor.mutable_data_ptr()));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto cells = core::parse_csv_record(records[i], separator_);
    for (std::size_t j = 0; j < chosen_.size(); ++j) {
      const auto& [column, index] = chosen_[j];
      if (column.type == ColumnType::text) {
        batch.texts[column.name].push_back(cells[index]);
        continue;
      }
      if (!parse_cell(cells[index], column.type, elements[j])) refuse_cell(rows[i], chosen_[j], cells[index]);
      elements[j] += c10::elementSize(scalar_type_of(column.type));
    }
  }
  return batch;
}

}  // namespace hortator::data

namespace hortator {

CsvRows::CsvRows(const std::filesystem::path& path, const CsvOptions& options)
    : table_(std::make_shared<const data::CsvTable>(path, options)) {}

std::int64_t CsvRows::size() const { return table_->size(); }
std::vector<std::string> CsvRows::columns() const { return table_->columns(); }
TableRow CsvRows::get(std::int64_t row) const { return data::first_row(table_->read({&row, 1})); }
TableBatch CsvRows::get_batch(std::span<const std::int64_t> rows) const { return table_->read(rows); }

}  // namespace hortator
