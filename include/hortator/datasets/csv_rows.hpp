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

/// Of CsvRows.
struct CsvOptions {
  std::vector<TableColumn> columns = {};  ///< those to read; none: all of the file's, as float32
  std::optional<char> separator = {};     ///< by default a tab for names that end with .tsv, else a comma
};

/// The rows of a CSV or TSV file whose first line names the columns. Cells may be quoted, "" stands for a quote in them
/// and line ends are part of them; lines end with LF or CRLF; empty lines do not count. The file is gone through once,
/// at the start: every row must have as many cells as the first line, and of each row its place is kept (8 bytes). Rows
/// are read from the file when they are asked for; a cell that is empty or no number of its column's type is an error
/// that names file, line and column.
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
