#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/file/fixed_file.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {

/// Calls `read(at, first, count)` for each run of consecutive row numbers, where rows[at] is `first`.
template <typename Read>
void for_each_run(std::span<const std::int64_t> rows, const Read& read) {
  for (std::size_t begin = 0; begin < rows.size();) {
    auto end = begin + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    read(begin, rows[begin], static_cast<std::int64_t>(end - begin));
    begin = end;
  }
}

/// Returns the size of such a tensor in bytes; nothing if a size is negative or the product overflows, as the sizes of
/// a damaged file may.
std::optional<std::int64_t> byte_count(const TensorSpec& spec);

/// Adjacent rows of equal size in a file.
struct StoredRows {
  TensorSpec row = {};
  std::int64_t rows = 0;
  std::uint64_t offset = 0;  ///< of the first row, in the file
};

/// An uninitialised tensor of that many rows.
at::Tensor empty_rows(const TensorSpec& row, std::size_t rows);

/// Reads the given rows into a tensor, in that order; adjacent rows are read together. Thread-safe.
at::Tensor read_rows(const FixedFile& file, const StoredRows& stored, std::span<const std::int64_t> rows);

}  // namespace hortator::formats
