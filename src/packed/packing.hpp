#pragma once

#include "packed/layout.hpp"

namespace hortator::packed {

/// The 16 values of nf4.
const float* nf4_values();

/// What int8's numbers are multiplied by, beside the largest absolute value of the row: 1 / 127 as bitsandbytes has it.
inline constexpr float int8_step = 0.007874015718698502F;

/// Packs a float32 matrix [outputs, inputs]. The result has one column.
at::Tensor pack(const at::Tensor& weight, const PackedLayout& layout);

}  // namespace hortator::packed
