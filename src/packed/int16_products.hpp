#pragma once

#include <vector>

#include "packed/layout.hpp"

namespace hortator::packed {

/// Whether int16_product() can multiply rows of this many inputs: it needs AVX-512 with VNNI, and whole blocks.
bool has_int16_product(const PackedLayout& layout);

/// x W^T for one to four rows of float32. Inputs are rounded to 16 bits in blocks of 64, each with a scale of its own
/// (an error of at most 2^-16 of the block's largest), so that numbers of 8 and 4 bits are multiplied as integers.
at::Tensor int16_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes);

}  // namespace hortator::packed
