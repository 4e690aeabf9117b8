#pragma once

#include <cstdint>
#include <vector>

#include "core/range.hpp"
#include "parallel/context/sequence_layout.hpp"

namespace hortator::parallel {

/// Some queries of one rank and some keys of another, whose scores are computed at once. Both are consecutive in the
/// sequence.
struct AttentionTile {
  core::Range queries = {};      ///< among the tokens of the rank that asks
  core::Range keys = {};         ///< among the tokens of the rank whose keys they are
  std::int64_t first_query = 0;  ///< its position in the sequence
  std::int64_t first_key = 0;    ///< the same

  /// Whether a causal mask hides a key from a query.
  bool has_hidden_keys() const { return first_key + keys.size() - 1 > first_query; }
  bool operator==(const AttentionTile&) const = default;
};

/// Tiles of at most `max_tokens` queries and keys, which together pair each query of rank `asking` with each key of
/// rank `asked` once. If `is_causal`, tiles in which no query sees a key are left out. Pure.
std::vector<AttentionTile> attention_tiles(const SequenceLayout& layout, int asking, int asked, bool is_causal,
                                           std::int64_t max_tokens);

}  // namespace hortator::parallel
