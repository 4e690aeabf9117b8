#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/parallel/mesh.hpp>
#include <optional>

#include "parallel/context/sequence_layout.hpp"
#include "parallel/mesh/rank_group.hpp"

namespace hortator::parallel {

/// The arguments of scaled_dot_product_attention beside queries, keys and values.
struct AttentionArguments {
  /// Boolean or added to the scores. Its last dimension runs along the keys: of the whole sequence, or of this rank's
  /// part if the mask is the same for all queries (key padding). The one before it runs along the queries: of this
  /// rank's part, or of the whole sequence. Sizes of 1 are repeated.
  std::optional<at::Tensor> mask = {};
  double dropout = 0;
  bool is_causal = false;  ///< in the order of the whole sequence
  std::optional<double> scale = {};
  bool groups_heads = false;  ///< enable_gqa
  ContextAttention form = ContextAttention::gather;
};

/// scaled_dot_product_attention of this rank's part of the queries with the keys and values of the whole sequence, of
/// which each rank passes its part: [..., tokens, width]. Gathers keys and values, or lets them travel in a ring
/// (ring_attention()); backward sums their gradients. Throws UsageError for masks of other sizes: no mask is ignored.
/// In a ring, all ranks throw together, also where their arguments differ in kind (a mask on some ranks only).
/// @collective
at::Tensor context_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const AttentionArguments& arguments, const SequenceLayout& layout, const RankGroup& group);

}  // namespace hortator::parallel
