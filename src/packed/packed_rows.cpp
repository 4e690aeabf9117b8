#include "packed/packed_rows.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::packed {
at::Tensor unpacked_rows(const PackedLayout& layout, const at::Tensor& bytes, std::int64_t begin, std::int64_t end) {
  auto rows = at::empty({end - begin, layout.inputs}, bytes.options().dtype(at::kFloat));
  auto* to = rows.mutable_data_ptr<float>();
  const auto parts = parts_of(layout, bytes);
  const auto& format = layout.numbers();
  at::parallel_for(begin, end, 16, [&](std::int64_t first, std::int64_t last) {
    for (auto row = first; row < last; ++row) format.unpack_row(layout, parts, row, to + (row - begin) * layout.inputs);
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
  for (std::int64_t i = 0; i < count; ++i) {
    if (number[i] < 0 || number[i] >= layout.outputs)
      throw UsageError(
          {.what = text::concat("embedding() got the index ", number[i], ", expected 0 to ", layout.outputs - 1),
           .why = "the packed weight has no such row",
           .hint = "use the tokenizer of this model"});
    layout.numbers().unpack_row(layout, parts, number[i], to + i * layout.inputs);
  }
  return rows;
}

}  // namespace hortator::packed
