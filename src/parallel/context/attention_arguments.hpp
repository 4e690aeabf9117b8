#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
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

/// Whether a mask is one of keys, of those that this rank has, of `all` of the whole sequence.
bool is_of_own_keys(const at::Tensor& mask, std::int64_t own, std::int64_t all);

/// Throws a UsageError on all ranks unless each one's tensors and mask are those of its part of the sequence (no mask
/// is ignored), a ring can compute them where one was asked for, and all ranks compute the same attention: with a mask
/// of the same kind, for instance. One reduction of 24 bytes where all is well. @collective
void agree_on_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                        const AttentionArguments& arguments, const SequenceLayout& layout, const RankGroup& group);

}  // namespace hortator::parallel
