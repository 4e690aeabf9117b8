#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <memory>
#include <span>
#include <vector>

namespace hortator {

namespace data {
struct ArrayFile;
}

/// Describes a file of bare little-endian numbers without a header.
struct RawArray {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> row_shape = {};  ///< shape of one sample; empty: a single number
  std::int64_t offset = 0;                   ///< bytes of the file before the first row
};

/// The rows of one large array in a file: NumPy's .npy, or bare numbers. The array is not kept in memory: rows are read
/// through the system's file cache, which all ranks of a node share.
class HORTATOR_API ArrayRows {
 public:
  /// Opens an .npy file. The samples are the array's rows along the first dimension.
  explicit ArrayRows(const std::filesystem::path& npy);
  ArrayRows(const std::filesystem::path& path, const RawArray& array);

  std::int64_t size() const;
  at::Tensor get(std::int64_t row) const;
  at::Tensor get_batch(std::span<const std::int64_t> rows) const;

 private:
  std::shared_ptr<const data::ArrayFile> array_;
};

}  // namespace hortator
