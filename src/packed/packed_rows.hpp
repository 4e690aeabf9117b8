#pragma once

#include "packed/formats/layout.hpp"

namespace hortator::packed {

/// Rows `begin` to `end` of a packed matrix as float32 [rows, inputs].
at::Tensor unpacked_rows(const PackedLayout& layout, const at::Tensor& bytes, std::int64_t begin, std::int64_t end);

/// The rows with these numbers [count], as float32 [count, inputs].
at::Tensor unpacked_rows_at(const PackedLayout& layout, const at::Tensor& bytes, const at::Tensor& numbers);

}  // namespace hortator::packed
