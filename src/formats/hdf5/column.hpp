#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/file/fixed_file.hpp"
#include "formats/hdf5/handle.hpp"
#include "formats/tensor/stored_rows.hpp"

namespace hortator::formats {

/// A dataset of any HDF5 file, read by rows along its first dimension. HDF5 converts numbers of another byte order or
/// size to the type of the tensor. Rows that are stored as they are in memory are read directly, at a quarter of HDF5's
/// cost a row and without its lock. Thread-safe.
class Hdf5Column {
 public:
  /// Throws FileError if the dataset is missing, has no rows, has elements other than numbers, or if its first row
  /// cannot be read (this HDF5 may be missing a filter). `bytes` is the same file and must outlive this. HDF5 caches
  /// `cache_bytes` of decompressed chunks; 0: as many as max_mixed_chunks in a row take, within bounds.
  Hdf5Column(const File& file, const FixedFile& bytes, const std::string& name, std::size_t cache_bytes = 0);

  const TensorSpec& row() const { return row_; }
  std::int64_t rows() const { return rows_; }
  /// Rows of a chunk, which are read and decompressed together; 1 if the dataset is not chunked.
  std::int64_t chunk_rows() const { return chunk_rows_; }

  /// Reads the given rows into a tensor, in that order. Each row is read once, adjacent rows together, in file order.
  at::Tensor read(std::span<const std::int64_t> rows) const;

 private:
  static constexpr int max_mixed_chunks = 16;

  void choose_cache(const File& file, const std::string& name, std::int64_t chunk_rows, std::size_t cache_bytes);
  void find_in_file();
  at::Tensor read_sorted(std::span<const std::int64_t> rows) const;
  void read_run(std::int64_t first, std::int64_t count, void* to) const;

  std::string what_;  // "'x' of "train.h5""
  const FixedFile* bytes_;
  Dataset dataset_;
  Space space_;
  Type memory_type_;
  TensorSpec row_;
  std::int64_t rows_ = 0;
  std::int64_t chunk_rows_ = 1;
  std::optional<StoredRows> in_file_;  ///< if rows are stored as they are in memory
};

}  // namespace hortator::formats
