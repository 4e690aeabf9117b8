#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "io/hdf5_handle.hpp"
#include "io/tensor_spec.hpp"

namespace hortator::io {

/// A dataset of any HDF5 file, read in rows along its first dimension. Numbers of another byte order or size are
/// converted by HDF5 to the type that tensors have. From any thread.
class Hdf5Column {
 public:
  /// Throws FileError where it is missing, has no rows or other elements than numbers, or where its first row cannot be
  /// read: a filter that this HDF5 lacks shows there.
  Hdf5Column(const File& file, const std::filesystem::path& path, const std::string& name);

  const TensorSpec& row() const { return row_; }
  std::int64_t rows() const { return rows_; }
  /// Rows that lie together and are read and unpacked together; 1 where it is not stored in chunks.
  std::int64_t chunk_rows() const { return chunk_rows_; }

  /// A tensor of `rows` in the order asked for. Each is fetched once, neighbours together, in the order of the file.
  at::Tensor read(std::span<const std::int64_t> rows) const;

 private:
  void read_run(std::int64_t first, std::int64_t count, void* to) const;

  std::string what_;  // "'x' of "train.h5""
  Dataset dataset_;
  Space space_;
  Type memory_type_;
  TensorSpec row_;
  std::int64_t rows_ = 0;
  std::int64_t chunk_rows_ = 1;
};

}  // namespace hortator::io
