#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/detail/leaves.hpp>
#include <hortator/training/accelerator_options.hpp>
#include <vector>

#include "parallel/mesh/rank_group.hpp"

namespace hortator::accelerator {

/// Returns the reduction of the ranks' tensors, times `scale`, as a new one. Throws UsageError for whole numbers and
/// another scale than 1, before ranks communicate. @collective over `ranks`
at::Tensor reduce(const parallel::RankGroup& ranks, const at::Tensor& tensor, Reduce operation, double scale = 1);
/// The same for each leaf, in place; small ones travel together. Throws if ranks differ in structure. If it throws for
/// one leaf's type, no leaf has changed. @collective over `ranks`
void reduce(const parallel::RankGroup& ranks, const std::vector<detail::Leaf>& leaves, Reduce operation,
            double scale = 1);

/// Overwrites the tensor with that of rank `root`. @collective over `ranks`
void broadcast(const parallel::RankGroup& ranks, const at::Tensor& tensor, int root);
/// The same for each leaf. Throws if ranks differ in structure. @collective over `ranks`
void broadcast(const parallel::RankGroup& ranks, const std::vector<detail::Leaf>& leaves, int root);

}  // namespace hortator::accelerator
