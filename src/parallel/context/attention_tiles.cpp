#include "parallel/context/attention_tiles.hpp"

#include <algorithm>

namespace hortator::parallel {
namespace {

/// Tokens of a rank that are consecutive in the sequence.
struct TokenRun {
  core::Range of_rank = {};
  std::int64_t position = 0;  ///< of the first one in the sequence
};

std::vector<TokenRun> runs_of(const SequenceLayout& layout, int rank, std::int64_t max_tokens) {
  std::vector<TokenRun> runs;
  std::int64_t before = 0;
  for (const auto& range : layout.ranges(rank)) {
    for (auto begin = range.begin; begin < range.end; begin += max_tokens) {
      const auto size = std::min(max_tokens, range.end - begin);
      runs.push_back({.of_rank = {before, before + size}, .position = begin});
      before += size;
    }
  }
  return runs;
}

}  // namespace

std::vector<AttentionTile> attention_tiles(const SequenceLayout& layout, int asking, int asked, bool is_causal,
                                           std::int64_t max_tokens) {
  std::vector<AttentionTile> tiles;
  for (const auto& queries : runs_of(layout, asking, max_tokens)) {
    const auto last_query = queries.position + queries.of_rank.size() - 1;
    for (const auto& keys : runs_of(layout, asked, max_tokens)) {
      if (is_causal && keys.position > last_query) continue;
      tiles.push_back({.queries = queries.of_rank,
                       .keys = keys.of_rank,
                       .first_query = queries.position,
                       .first_key = keys.position});
    }
  }
  return tiles;
}

}  // namespace hortator::parallel
