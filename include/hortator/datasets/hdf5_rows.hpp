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

/// Of Hdf5Rows.
struct Hdf5RowsOptions {
  /// Memory for unpacked chunks of each dataset. 0: room for the 17 chunks in a row that the default block_sampler()
  /// comes back to, at most 256 MiB; a wider window, or larger chunks, need more, or rows are unpacked again and again.
  std::size_t cache_bytes = 0;
};

/// Datasets of an HDF5 file whose first dimension counts samples: a sample is one row of each, by their names. Every
/// rank opens the file by itself and reads only the rows of its batches; neighbours are read together.
class HORTATOR_API Hdf5Rows {
 public:
  /// Names may have groups: "train/images".
  Hdf5Rows(const std::filesystem::path& path, const std::vector<std::string>& datasets,
           const Hdf5RowsOptions& options = {});

  std::int64_t size() const;
  std::vector<std::string> columns() const;
  /// Rows that are stored, and unpacked, together: the block for a block_sampler(). 1 where no dataset is stored in
  /// chunks.
  std::int64_t chunk_length() const;
  std::map<std::string, at::Tensor> get(std::int64_t row) const;
  std::map<std::string, at::Tensor> get_batch(std::span<const std::int64_t> rows) const;

 private:
  std::shared_ptr<const data::Hdf5TableFile> table_;
};

}  // namespace hortator
