#pragma once

#include <hortator/datasets/csv_rows.hpp>

#include "data/files/record_file.hpp"

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

}  // namespace hortator::data
