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

/// A dataset of any HDF5 file, read in rows along its first dimension. Numbers of another byte order or size are
/// converted by HDF5 to the type that tensors have; what lies in the file as it does in memory is read from there, at a
/// quarter of HDF5's cost a row and without its lock. From any thread.
class Hdf5Column {
 public:
  /// Throws FileError where it is missing, has no rows or other elements than numbers, or where its first row cannot be
  /// read: a filter that this HDF5 lacks shows there.
  /// `bytes` is the same file, and outlives this. HDF5 keeps `cache_bytes` of unpacked chunks; 0: as many as
  /// max_mixed_chunks in a row take, within bounds.
  Hdf5Column(const File& file, const FixedFile& bytes, const std::string& name, std::size_t cache_bytes = 0);

  const TensorSpec& row() const { return row_; }
  std::int64_t rows() const { return rows_; }
  /// Rows that lie together and are read and unpacked together; 1 where it is not stored in chunks.
  std::int64_t chunk_rows() const { return chunk_rows_; }

  /// A tensor of `rows` in the order asked for. Each is fetched once, neighbours together, in the order of the file.
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
  std::optional<StoredRows> in_file_;  ///< where the rows lie as they do in memory
};

}  // namespace hortator::formats
