#pragma once

#include <ATen/core/Tensor.h>

#include "parallel/context/attention_arguments.hpp"
#include "parallel/context/sequence_layout.hpp"
#include "parallel/mesh/rank_group.hpp"

namespace hortator::parallel {

/// scaled_dot_product_attention of this rank's part of the queries with the keys and values of the whole sequence, of
/// which each rank passes its part: [..., tokens, width]. Gathers keys and values, or lets them travel in a ring
/// (ring_attention()); backward sums their gradients. First agrees as agree_on_attention(). @collective
at::Tensor context_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const AttentionArguments& arguments, const SequenceLayout& layout, const RankGroup& group);

}  // namespace hortator::parallel
