#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>

#include "formats/file/fixed_file.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {

/// The bytes of a tensor of this kind; nothing when a size is negative or the product too large. Sizes come from files.
std::optional<std::int64_t> byte_count(const TensorSpec& spec);

/// Rows of one kind that lie one after the other in a file.
struct StoredRows {
  TensorSpec row = {};
  std::int64_t rows = 0;
  std::uint64_t offset = 0;  ///< of the first
};

/// A tensor of `rows` in the order asked for; neighbours are read together. From any thread.
at::Tensor read_rows(const FixedFile& file, const StoredRows& stored, std::span<const std::int64_t> rows);

}  // namespace hortator::formats
