#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "parallel/tensor/division.hpp"
#include "parallel/tensor/tensor_ranks.hpp"

/// Exchanges that autograd differentiates, to any order: three pairs of functions. Each function is the other's
/// backward. A tensor that all ranks have whole has the same gradient on all; a divided one has the gradient of its
/// parts.
namespace hortator::parallel {

using SharedRanks = std::shared_ptr<const TensorRanks>;

/// TensorRanks::all_or_none(); without ranks (null) runs the work on this rank alone. @collective over the ranks
inline void all_or_none(const SharedRanks& ranks, const std::function<void()>& work) {
  ranks ? ranks->all_or_none(work) : work();
}

/// Use of a whole tensor in computations that differ by rank: the tensor itself; its gradient is the sum over all
/// ranks. Several uses of one tensor share one sum.
at::Tensor spread(const at::Tensor& whole, const SharedRanks& ranks);
/// The sum of what each rank has computed, whole on each rank. @collective
at::Tensor sum(const at::Tensor& addend, const SharedRanks& ranks);
/// The whole tensor from its parts. @collective
at::Tensor join(const at::Tensor& part, const Division& division, const SharedRanks& ranks);
/// This rank's part of a whole tensor; backward is collective.
at::Tensor part_of(const at::Tensor& whole, const Division& division, const SharedRanks& ranks);

/// The whole tensor from its parts, for computations that differ by rank; backward sums over all ranks. @collective
at::Tensor gather(const at::Tensor& part, const Division& division, const SharedRanks& ranks);
/// This rank's part of the sum of what each rank has computed. @collective
at::Tensor sum_part(const at::Tensor& addend, const Division& division, const SharedRanks& ranks);

}  // namespace hortator::parallel
