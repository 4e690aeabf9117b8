#include "parallel/context/ring.hpp"

#include <ATen/ops/arange.h>

namespace hortator::parallel {
namespace {

at::Tensor causal_mask(const AttentionTile& tile, c10::Device device) {
  const auto options = at::TensorOptions().device(device).dtype(at::kLong);
  const auto queries = at::arange(tile.first_query, tile.first_query + tile.queries.size(), options);
  return at::arange(tile.first_key, tile.first_key + tile.keys.size(), options).le(queries.unsqueeze(1));
}

}  // namespace

std::vector<AttentionTile> tiles_of(const Ring& ring, int source) {
  return attention_tiles(ring.layout, ring.group.index(), source, ring.scores.is_causal, ring.scores.max_tokens);
}

TravellingBlocks travelling(const RingOperands& mine, const Ring& ring) {
  TravellingBlocks blocks({mine.keys.sizes().vec(), mine.values.sizes().vec()}, mine.keys.options(), ring.layout,
                          ring.group.communicator_of(mine.keys));
  const auto copies = blocks.tensors();
  copies[0].copy_(mine.keys);
  copies[1].copy_(mine.values);
  return blocks;
}

AttentionBlock block_of(const RingOperands& mine, const std::vector<at::Tensor>& keys_and_values, const Ring& ring,
                        const AttentionTile& tile) {
  AttentionBlock block{.queries = rows(mine.queries, tile.queries),
                       .keys = rows(keys_and_values[0], tile.keys),
                       .values = rows(keys_and_values[1], tile.keys),
                       .scale = ring.scores.scale};
  if (mine.mask) block.mask = tile_of_mask(*mine.mask, tile);
  if (ring.scores.is_causal && tile.has_hidden_keys()) block.mask = causal_mask(tile, mine.queries.device());
  return block;
}

at::Tensor rows(const at::Tensor& tensor, const core::Range& range) {
  return tensor.narrow(-2, range.begin, range.size());
}

at::Tensor tile_of_mask(const at::Tensor& mask, const AttentionTile& tile) {
  const auto of_queries = mask.size(-2) == 1 ? mask : rows(mask, tile.queries);
  return mask.size(-1) == 1 ? of_queries : of_queries.narrow(-1, tile.first_key, tile.keys.size());
}

at::TensorOptions options_of_sums(const RingOperands& mine) {
  const auto type = mine.queries.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return mine.queries.options().dtype(type).requires_grad(false);
}

}  // namespace hortator::parallel
