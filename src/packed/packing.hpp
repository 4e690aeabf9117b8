#pragma once

#include "packed/formats/layout.hpp"

namespace hortator::packed {

/// Packs a float32 matrix [outputs, inputs]. The result has one column.
at::Tensor pack(const at::Tensor& weight, const PackedLayout& layout);

}  // namespace hortator::packed
