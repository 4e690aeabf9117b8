#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/context/attention_tiles.hpp"
#include "parallel/context/block_attention.hpp"
#include "parallel/context/travelling_blocks.hpp"
#include "parallel/mesh/rank_group.hpp"

/// What both passes of ring_attention() have in common. Local.
namespace hortator::parallel {

/// How the scores of a ring attention are made.
struct RingScores {
  bool is_causal = false;
  double scale = 1;
  /// The most queries and keys whose scores are in memory at once.
  std::int64_t max_tokens = 512;
};

/// One attention over the ranks of `group`, which must outlive this.
struct Ring {
  RingScores scores = {};
  SequenceLayout layout;
  RankGroup group;
};

/// What one rank passes. `mask` may be missing; its dimension -2 runs along this rank's queries, its last one along the
/// keys of the whole sequence. Sizes of 1 are repeated.
struct RingOperands {
  at::Tensor queries = {}, keys = {}, values = {};
  std::optional<at::Tensor> mask = {};
};

/// The tiles of this rank's queries and the keys of rank `source`.
std::vector<AttentionTile> tiles_of(const Ring& ring, int source);
/// This rank's keys and values, to travel. Allocates the memory of two ranks.
TravellingBlocks travelling(const RingOperands& mine, const Ring& ring);
/// The operands of a tile. `keys_and_values` are those of the rank whose keys it has.
AttentionBlock block_of(const RingOperands& mine, const std::vector<at::Tensor>& keys_and_values, const Ring& ring,
                        const AttentionTile& tile);

/// Some tokens of a tensor that has them along dimension -2.
at::Tensor rows(const at::Tensor& tensor, const core::Range& range);
/// The elements of a mask, or of its gradient, that belong to a tile.
at::Tensor tile_of_mask(const at::Tensor& mask, const AttentionTile& tile);
/// Sums of this rank have float32 at least.
at::TensorOptions options_of_sums(const RingOperands& mine);

}  // namespace hortator::parallel
