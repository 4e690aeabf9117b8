#pragma once

#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/columns/columnar_file.hpp"
#include "formats/file/fixed_file.hpp"

namespace hortator::formats {

/// The columns of a schema that a ColumnChoice names.
struct ChosenColumns {
  std::vector<ColumnSpec> specs = {};
  std::vector<int> fields = {};  ///< of each spec, in the schema
};

/// Throws UsageError for a column that the schema does not have or that cannot be read. Pure.
ChosenColumns choose(const arrow::Schema& schema, const ColumnChoice& choice, const std::filesystem::path& path);

/// Files that Arrow's library reads: what all of its formats share.
class ArrowFile : public ColumnarFile {
 public:
  const std::vector<ColumnSpec>& columns() const final { return chosen_.specs; }
  const std::vector<std::int64_t>& group_rows() const final { return group_rows_; }
  std::vector<ColumnValues> read(std::size_t group) const final;

  virtual std::shared_ptr<arrow::Schema> schema() const = 0;
  /// Calls choose(), then list_groups().
  void prepare(const ColumnChoice& choice);

 protected:
  explicit ArrowFile(std::shared_ptr<const FixedFile> file) : file_(std::move(file)) {}

  virtual std::vector<std::int64_t> list_groups() = 0;
  /// Reads these fields of the schema, in ascending order. Thread-safe. Any exception means that the file is damaged.
  virtual std::shared_ptr<arrow::Table> read_fields(std::size_t group, const std::vector<int>& fields) const = 0;

  const std::shared_ptr<const FixedFile>& file() const { return file_; }
  const std::vector<int>& fields() const { return chosen_.fields; }

 private:
  std::shared_ptr<const FixedFile> file_;
  ChosenColumns chosen_ = {};
  std::vector<std::int64_t> group_rows_ = {};
  std::optional<double> null_value_ = {};
};

std::unique_ptr<ArrowFile> open_parquet(const std::shared_ptr<const FixedFile>& file);
std::unique_ptr<ArrowFile> open_arrow_file(const std::shared_ptr<const FixedFile>& file);
std::unique_ptr<ArrowFile> open_arrow_stream(const std::shared_ptr<const FixedFile>& file);

}  // namespace hortator::formats
