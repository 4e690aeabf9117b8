#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/export.hpp>

namespace hortator::nn {

struct LinearCrossEntropyOptions {
  at::Tensor bias = {};  ///< [classes], of the linear layer
  /// Rows with this target count neither for the sum nor for the mean, and have no gradient.
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  bool mean = true;  ///< over the rows that are not ignored; otherwise the sum
  /// Rows whose scores exist at the same time. 0: as many as have 2^23 scores on a CPU (32 MiB in float32), 2^26 on a
  /// device.
  std::int64_t rows_at_once = 0;
};

/// cross_entropy(linear(hidden, weight, bias), target) that never holds the scores of all rows: those of some rows
/// exist at a time, and their gradients are computed at once. For language models, whose scores take more memory than
/// all else. The loss has the values and gradients of the plain functions, computed in float32 from products in
/// autocast's type; it has no second derivatives. `hidden` is [.., width], `weight` [classes, width], and `target`
/// [..], whole numbers. A weight whose classes are divided along parallel.tensor stays divided, and no score travels;
/// then it is @collective over these ranks.
HORTATOR_API at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight,
                                             const at::Tensor& target, const LinearCrossEntropyOptions& options = {});

}  // namespace hortator::nn
