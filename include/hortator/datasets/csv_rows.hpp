#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/datasets/table.hpp>
#include <memory>
#include <optional>
#include <span>

namespace hortator {

namespace data {
class CsvTable;
}

/// Options of CsvRows.
struct CsvOptions {
  std::vector<TableColumn> columns = {};  ///< the columns to read; empty: all columns, as float32
  std::optional<char> separator = {};     ///< default: a tab if the file's name ends with .tsv, otherwise a comma
};

/// The rows of a CSV or TSV file whose first line names the columns. Cells may be quoted: in a quoted cell, "" means a
/// quote, and line breaks belong to the cell. Lines end with LF or CRLF; empty lines are skipped. The constructor scans
/// the file once: every row must have the same number of cells as the first line, and the position of each row is kept
/// (8 bytes). Rows are read from the file on demand. A cell that is empty or not a number of its column's type is an
/// error that names file, line and column.
class HORTATOR_API CsvRows {
 public:
  explicit CsvRows(const std::filesystem::path& path, const CsvOptions& options = {});

  std::int64_t size() const;
  std::vector<std::string> columns() const;  ///< those that are read
  TableRow get(std::int64_t row) const;
  TableBatch get_batch(std::span<const std::int64_t> rows) const;

 private:
  std::shared_ptr<const data::CsvTable> table_;
};

}  // namespace hortator
