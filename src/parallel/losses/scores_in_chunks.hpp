#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "interception/weight_operators.hpp"
#include "parallel/tensor/conjugates.hpp"

/// The loss of scores whose rows exist some at a time.
namespace hortator::parallel::losses {

struct LossOfScores {
  at::Tensor sum;                                         ///< of all rows that are not ignored, in float32 or float64
  at::Tensor of_rows = {}, of_weight = {}, of_bias = {};  ///< the sum's gradients, where they are wanted
};

/// What does not depend on the scores.
struct ScoresOptions {
  at::Tensor target;         ///< [rows], class 0 where it is ignored
  at::Tensor is_ignored;     ///< [rows]
  std::int64_t classes = 0;  ///< of all ranks
  std::int64_t part = 0;     ///< classes of a rank's part, with padding
  SharedRanks ranks = {};    ///< among which classes are divided; null if they are not
  double smoothing = 0;
  at::ScalarType type = at::kFloat;  ///< of the products
  std::int64_t rows_at_once = 0;
  std::int64_t multiple = 1;  ///< classes are filled up to a multiple of it, so that the products are fast
  std::shared_ptr<interception::WeightOperator> packed = {};          ///< of a packed weight, which has no gradient
  bool wants_rows = false, wants_weight = false, wants_bias = false;  ///< gradients
};

/// Cross entropy of the scores rows weight^T + bias. Only `rows_at_once` rows of them exist at a time.
class ChunkedScores {
 public:
  explicit ChunkedScores(ScoresOptions options) : options_(std::move(options)) {}

  /// `weight` and `bias` are of this rank's classes, without padding. @collective over the ranks, if classes are
  /// divided
  LossOfScores compute(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias) const;

 private:
  ScoresOptions options_;
};

}  // namespace hortator::parallel::losses
