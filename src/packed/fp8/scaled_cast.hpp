#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/training/fp8.hpp>

/// Products in 8 bits.
namespace hortator::packed {

/// Values of 8 bits, and what they are multiplied by.
struct ScaledTensor {
  at::Tensor values = {};
  at::Tensor scale = {};  ///< one float32
};

/// The largest absolute values of one tensor in the steps before.
class AmaxHistory {
 public:
  explicit AmaxHistory(const Fp8Options& options) : options_(options) {}

  /// What the present values are scaled by: with no history yet, their own largest. Then notes it. Steps of zeros, and
  /// of values that are not finite, say nothing about the next step: they leave the history as it is.
  at::Tensor next(const at::Tensor& amax);

 private:
  const Fp8Options& options_;
  at::Tensor amaxes_;  ///< [length], of the latest steps
  std::int64_t steps_ = 0;
};

/// Casts to 8 bits. Delayed scaling uses and changes `history`; null: dynamic scaling. Larger values than the scale
/// allows become the largest one; NaN stays.
ScaledTensor scaled(const at::Tensor& tensor, at::ScalarType type, std::int64_t margin, AmaxHistory* history);

/// a [m, k] times b [n, k] transposed, in `type`.
at::Tensor product_with_transposed(const ScaledTensor& a, const ScaledTensor& b, at::ScalarType type);

/// The same values with the other order of dimensions in memory.
ScaledTensor transposed(const ScaledTensor& one);

}  // namespace hortator::packed
