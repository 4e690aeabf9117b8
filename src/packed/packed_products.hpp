#pragma once

#include "packed/formats/layout.hpp"

namespace hortator::packed {

/// x W^T for a packed matrix W and x [.., inputs], in the type of x. Differentiable by x. A few rows of float32 are
/// multiplied at the speed at which the bytes can be read; for more, some rows of W are unpacked at a time.
at::Tensor product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& weight);

/// y W for y [rows, outputs], in its type: the gradient of x from that of the product. Not differentiable.
at::Tensor backward_product(const PackedLayout& layout, const at::Tensor& y, const at::Tensor& weight);

/// The rows of W with these numbers [..], as float32 [.., inputs].
at::Tensor rows_at(const PackedLayout& layout, const at::Tensor& weight, const at::Tensor& numbers);

}  // namespace hortator::packed
