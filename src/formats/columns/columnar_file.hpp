#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Parquet and Arrow files, which store tables by column, in groups of rows.
namespace hortator::formats {

/// A column: its name, and the type of its values at the innermost level of its lists.
struct ColumnSpec {
  std::string name = {};
  std::optional<at::ScalarType> type = {};  ///< nothing: text
  std::size_t depth = 0;                    ///< levels of lists around a value

  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

/// "float32", "text" or "lists of lists of int64"
std::string to_string(const ColumnSpec& column);

/// A column of some rows, without gaps. Offsets, from the outermost level of lists, divide what is within: list i of a
/// level has the entries offsets[i] to offsets[i + 1] of the next level; the last level divides the values.
struct ColumnValues {
  at::Tensor numbers = {};  ///< [values]; undefined: text
  std::vector<std::string> texts = {};
  std::vector<std::vector<std::int64_t>> offsets = {};

  std::size_t bytes() const;
};

/// What to read of a file.
struct ColumnChoice {
  std::vector<std::string> names = {};    ///< empty: all columns
  std::optional<double> null_value = {};  ///< what stands for a null; nothing: a null is an error
};

/// A file of columns, in groups of rows that are read together. Thread-safe.
class ColumnarFile {
 public:
  ColumnarFile() = default;
  virtual ~ColumnarFile() = default;
  ColumnarFile(const ColumnarFile&) = delete;
  ColumnarFile& operator=(const ColumnarFile&) = delete;

  virtual const std::vector<ColumnSpec>& columns() const = 0;       ///< those to read, in the order of the choice
  virtual const std::vector<std::int64_t>& group_rows() const = 0;  ///< the number of rows of each group
  /// Reads the columns of a group. Throws FileError that names row and column, also if the file has changed.
  virtual std::vector<ColumnValues> read(std::size_t group) const = 0;
};

/// Opens a Parquet file, or one of Arrow's (Feather, IPC file, IPC stream), as its first bytes show. Throws
/// FileError if it is neither or damaged; UsageError if a column does not exist, is of a type that cannot be a tensor
/// or text, or if this build reads no such files.
std::unique_ptr<ColumnarFile> open_columnar_file(const std::filesystem::path& path, const ColumnChoice& choice);

/// The names of all columns of such a file, also of those that cannot be read.
std::vector<std::string> column_names(const std::filesystem::path& path);

}  // namespace hortator::formats
