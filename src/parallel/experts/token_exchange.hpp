#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "parallel/tensor/tensor_ranks.hpp"

namespace hortator::parallel {

/// How rows lie that the ranks of a group have sent to one of them. Pure.
struct ArrivedRows {
  std::vector<std::int64_t> from = {};    ///< rows of each rank
  std::vector<std::int64_t> counts = {};  ///< rows for each of this rank's experts
  std::vector<std::int64_t> order = {};   ///< the positions of the first expert's rows, then of the second's, ..
};

/// `arrived` are the rows that each rank sends for each of this rank's experts: rank by rank, each in the order of the
/// experts.
ArrivedRows arrange(const std::vector<std::int64_t>& arrived, int ranks);

/// What the experts of one rank compute of `rows`: the first `counts[0]` rows are those of its first expert. Does
/// not communicate.
using ComputeExperts = std::function<at::Tensor(const at::Tensor& rows, const std::vector<std::int64_t>& counts)>;

/// Rows that travel to the ranks of their experts and back. Rank r of `ranks` has the r-th part of the experts.
class TokenExchange {
 public:
  /// This rank has `counts` rows for each of all experts. @collective
  TokenExchange(const std::vector<std::int64_t>& counts, std::shared_ptr<const TensorRanks> ranks);

  /// What the experts compute of `rows`, which are in the order of all experts. Memory that runs out, or another error
  /// of one rank, is thrown by all; in backward only where rows travel. @collective, and so is backward
  at::Tensor compute(const at::Tensor& rows, const ComputeExperts& experts) const;

 private:
  std::shared_ptr<const TensorRanks> ranks_;
  std::vector<std::int64_t> to_;  ///< rows for each rank
  ArrivedRows arrived_;
};

}  // namespace hortator::parallel
