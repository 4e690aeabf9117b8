#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/detail/leaves.hpp>
#include <hortator/training/accelerator_options.hpp>
#include <vector>

#include "parallel/mesh/rank_group.hpp"

namespace hortator::accelerator {

/// Returns the reduction of the ranks' tensors as a new one. @collective over `ranks`
at::Tensor reduce(const parallel::RankGroup& ranks, const at::Tensor& tensor, Reduce operation);
/// The same for each leaf, in place; small ones travel together. Throws if ranks differ in structure. @collective over
/// `ranks`
void reduce(const parallel::RankGroup& ranks, const std::vector<detail::Leaf>& leaves, Reduce operation);
/// Returns a reduction's result times `scale`. Throws UsageError for whole numbers and another scale than 1.
at::Tensor scaled(const at::Tensor& result, double scale);

/// Overwrites the tensor with that of rank `root`. @collective over `ranks`
void broadcast(const parallel::RankGroup& ranks, const at::Tensor& tensor, int root);
/// The same for each leaf. Throws if ranks differ in structure. @collective over `ranks`
void broadcast(const parallel::RankGroup& ranks, const std::vector<detail::Leaf>& leaves, int root);

}  // namespace hortator::accelerator
