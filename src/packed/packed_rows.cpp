#include "packed/packed_rows.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "packed/packing.hpp"

namespace hortator::packed {
namespace {

unsigned nibble_at(const std::uint8_t* numbers, std::int64_t index) {
  const auto byte = numbers[index / 2];
  return index % 2 == 0 ? byte >> 4U : byte & 15U;
}

void unpack_int8_row(const PackedLayout& layout, const PackedBytes& parts, std::int64_t row, float* to) {
  const auto* numbers = parts.numbers + row * layout.inputs;
  const auto largest = parts.floats[row];
  for (std::int64_t i = 0; i < layout.inputs; ++i)
    to[i] = static_cast<float>(static_cast<std::int8_t>(numbers[i])) * largest * int8_step;
}

void unpack_int8_groups(const PackedLayout& layout, const PackedBytes& parts, std::int64_t row, float* to) {
  const auto* numbers = parts.numbers + row * layout.inputs;
  const auto* scales = parts.floats + row * layout.groups_of_row();
  for (std::int64_t i = 0; i < layout.inputs; ++i)
    to[i] = static_cast<float>(static_cast<std::int8_t>(numbers[i])) * scales[i / layout.group];
}

void unpack_int4_row(const PackedLayout& layout, const PackedBytes& parts, std::int64_t row, float* to) {
  const auto* numbers = parts.numbers + row * layout.row_bytes();
  const auto* pairs = parts.pairs + row * layout.groups_of_row();
  for (std::int64_t i = 0; i < layout.inputs; ++i) {
    const auto pair = pairs[i / layout.group];
    to[i] = static_cast<float>(nibble_at(numbers, i)) * scale_of(pair) + smallest_of(pair);
  }
}

void unpack_nf4_row(const PackedLayout& layout, const PackedBytes& parts, std::int64_t row, float* to) {
  const auto* values = nf4_values();
  const auto first = row * layout.inputs;
  for (std::int64_t i = 0; i < layout.inputs; ++i)
    to[i] = values[nibble_at(parts.numbers, first + i)] * parts.floats[(first + i) / layout.group];
}

using UnpackRow = void (*)(const PackedLayout&, const PackedBytes&, std::int64_t, float*);

UnpackRow unpack_of(const PackedLayout& layout) {
  if (layout.format == WeightFormat::int8) return unpack_int8_row;
  if (layout.format == WeightFormat::int8_groups) return unpack_int8_groups;
  return layout.format == WeightFormat::int4 ? unpack_int4_row : unpack_nf4_row;
}

}  // namespace

at::Tensor unpacked_rows(const PackedLayout& layout, const at::Tensor& bytes, std::int64_t begin, std::int64_t end) {
  auto rows = at::empty({end - begin, layout.inputs}, bytes.options().dtype(at::kFloat));
  auto* to = rows.mutable_data_ptr<float>();
  const auto parts = parts_of(layout, bytes);
  const auto unpack = unpack_of(layout);
  at::parallel_for(begin, end, 16, [&](std::int64_t first, std::int64_t last) {
    for (auto row = first; row < last; ++row) unpack(layout, parts, row, to + (row - begin) * layout.inputs);
  });
  return rows;
}

at::Tensor unpacked_rows_at(const PackedLayout& layout, const at::Tensor& bytes, const at::Tensor& numbers) {
  const auto count = numbers.numel();
  auto rows = at::empty({count, layout.inputs}, bytes.options().dtype(at::kFloat));
  auto* to = rows.mutable_data_ptr<float>();
  const auto wanted = numbers.to(at::kLong).contiguous();
  const auto* number = wanted.const_data_ptr<std::int64_t>();
  const auto parts = parts_of(layout, bytes);
  const auto unpack = unpack_of(layout);
  for (std::int64_t i = 0; i < count; ++i) {
    if (number[i] < 0 || number[i] >= layout.outputs)
      throw UsageError(
          {.what = text::concat("embedding() got the index ", number[i], ", expected 0 to ", layout.outputs - 1),
           .why = "the packed weight has no such row",
           .hint = "use the tokenizer of this model"});
    unpack(layout, parts, number[i], to + i * layout.inputs);
  }
  return rows;
}

}  // namespace hortator::packed
