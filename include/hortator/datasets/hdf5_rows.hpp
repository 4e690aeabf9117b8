#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hortator {

namespace data {
struct Hdf5TableFile;
}

/// Options of Hdf5Rows.
struct Hdf5RowsOptions {
  /// Memory for decompressed chunks of each dataset. 0: enough for the 17 consecutive chunks that the default
  /// block_sampler() uses, at most 256 MiB. With a wider window or larger chunks, set more, or chunks are decompressed
  /// repeatedly.
  std::size_t cache_bytes = 0;
};

/// Datasets of an HDF5 file whose first dimension counts samples. A sample is one row of each dataset, by name. Every
/// rank opens the file and reads only the rows of its batches; adjacent rows are read together.
class HORTATOR_API Hdf5Rows {
 public:
  /// Names may contain groups: "train/images".
  Hdf5Rows(const std::filesystem::path& path, const std::vector<std::string>& datasets,
           const Hdf5RowsOptions& options = {});

  std::int64_t size() const;
  std::vector<std::string> columns() const;
  /// The number of rows that are stored and decompressed together: use it as the block of a block_sampler(). 1 if no
  /// dataset is stored in chunks.
  std::int64_t chunk_length() const;
  std::map<std::string, at::Tensor> get(std::int64_t row) const;
  std::map<std::string, at::Tensor> get_batch(std::span<const std::int64_t> rows) const;

 private:
  std::shared_ptr<const data::Hdf5TableFile> table_;
};

}  // namespace hortator
