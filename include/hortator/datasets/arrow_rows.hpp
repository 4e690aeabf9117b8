#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <hortator/datasets/table.hpp>
#include <hortator/export.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hortator {

namespace data {
class ArrowTable;
}

/// Options of ArrowRows.
struct ArrowRowsOptions {
  std::vector<std::string> columns = {};  ///< the columns to read; empty: all columns
  /// What stands for a null: numbers are this value, texts and lists are empty. Nothing: a null is an error.
  std::optional<double> null_value = {};
  /// Memory for decoded groups of rows. With less than the block_sampler() or the workers of a loader use at a time,
  /// groups are decoded repeatedly. The group that was read last is kept whatever its size.
  std::size_t cache_bytes = std::size_t{256} << 20;
};

/// The rows of Parquet and Arrow files (Feather, IPC files and IPC streams). Several files are read as one table.
/// Numbers and lists of numbers, nested to any depth, become tensors of the file's type (unsigned ones of 16 to 64 bits
/// of the next larger signed type, times their numbers); strings and bytes become text. Only the named columns are
/// read, one group of rows at a time. Reading a row needs its group: shuffle with a block_sampler() of chunk_length(),
/// or write files with small groups. Needs a build with Arrow's library.
class HORTATOR_API ArrowRows {
 public:
  explicit ArrowRows(const std::vector<std::filesystem::path>& files, const ArrowRowsOptions& options = {});
  /// Takes files in braces: without this constructor, two names in braces would become one path.
  ArrowRows(std::initializer_list<std::filesystem::path> files, const ArrowRowsOptions& options = {});
  explicit ArrowRows(const std::filesystem::path& file, const ArrowRowsOptions& options = {});

  std::int64_t size() const;
  std::vector<std::string> columns() const;  ///< those that are read
  std::int64_t chunk_length() const;         ///< the number of rows of the largest group, 1 or more
  TableRow get(std::int64_t row) const;
  /// Lists must have the same shape in all of these rows; otherwise give data_loader() a function that pads.
  TableBatch get_batch(std::span<const std::int64_t> rows) const;

 private:
  std::shared_ptr<const data::ArrowTable> table_;
};

}  // namespace hortator
