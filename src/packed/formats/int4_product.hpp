#pragma once

#include "packed/formats/float_product.hpp"

namespace hortator::packed {

/// A product of int4's numbers as they are, in bytes: inputs are rounded to 16 bits in blocks of 128, or of a group
/// that is larger, and stand as two bytes each. Undefined where the processor has no VNNI, and for groups other than
/// 32, 64 and multiples of 128.
at::Tensor int4_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes);

}  // namespace hortator::packed
