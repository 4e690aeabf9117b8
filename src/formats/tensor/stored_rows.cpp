#include "formats/tensor/stored_rows.hpp"

#include <ATen/ops/empty.h>

namespace hortator::formats {

std::optional<std::int64_t> byte_count(const TensorSpec& spec) {
  auto bytes = spec.element_bytes();
  bool fits = true;
  bool empty = false;
  for (const auto size : spec.shape) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
    fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
  }
  if (empty) return 0;
  return fits ? std::optional(bytes) : std::nullopt;
}

at::Tensor empty_rows(const TensorSpec& row, std::size_t rows) {
  auto shape = row.shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(rows));
  return at::empty(shape, row.type);
}

at::Tensor read_rows(const FixedFile& file, const StoredRows& stored, std::span<const std::int64_t> rows) {
  auto tensor = empty_rows(stored.row, rows.size());
  const auto row_bytes = static_cast<std::size_t>(stored.row.bytes());
  if (row_bytes == 0) return tensor;
  auto* to = static_cast<std::byte*>(tensor.mutable_data_ptr());
  for_each_run(rows, [&](std::size_t at, std::int64_t first, std::int64_t count) {
    file.read_at(stored.offset + static_cast<std::uint64_t>(first) * row_bytes, to + at * row_bytes,
                 static_cast<std::size_t>(count) * row_bytes);
  });
  return tensor;
}

}  // namespace hortator::formats
