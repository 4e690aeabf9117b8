#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/detail/leaves.hpp>
#include <vector>

#include "parallel/mesh/rank_group.hpp"

namespace hortator::accelerator {

std::vector<at::Tensor> tensors_of(const std::vector<detail::Leaf>& leaves);

/// Joins the ranks' tensors along dimension 0, in their order; single numbers become a vector. One rank gets its tensor
/// as it is, as in Hugging Face Accelerate. @collective over `ranks`
at::Tensor gather(const parallel::RankGroup& ranks, const at::Tensor& tensor);
/// The same for each leaf, in place; small ones travel together. Throws if ranks differ in structure. @collective over
/// `ranks`
void gather(const parallel::RankGroup& ranks, const std::vector<detail::Leaf>& leaves);

}  // namespace hortator::accelerator
