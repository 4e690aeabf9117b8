#pragma once

#include <cstdint>
#include <vector>

#include "core/range.hpp"

namespace hortator::parallel {

/// How a sequence is divided over the ranks of a context group. It is cut into 2 n chunks, and rank r has chunk r and
/// chunk 2 n - 1 - r: under a causal mask, where later tokens see more keys, all ranks have the same work. Pure.
class SequenceLayout {
 public:
  /// A sequence of `length` tokens over `ranks` ranks. Sizes of chunks differ by at most one. Throws UsageError if
  /// there are fewer tokens than chunks.
  SequenceLayout(std::int64_t length, int ranks);

  std::int64_t length() const { return length_; }
  int ranks() const { return ranks_; }
  /// The tokens of `rank`, in ascending order: two ranges, or one if there is one rank.
  std::vector<core::Range> ranges(int rank) const;
  /// How many tokens `rank` has.
  std::int64_t size(int rank) const;
  std::vector<std::int64_t> sizes() const;

  /// A range of the ranks' tokens, one rank after the other, and where it is in the sequence.
  struct Move {
    std::int64_t in_rank_order = 0;
    core::Range in_sequence = {};
  };
  /// The ranges of all ranks, in the order of the sequence.
  std::vector<Move> moves() const;

  bool operator==(const SequenceLayout&) const = default;

 private:
  std::int64_t length_;
  int ranks_;
};

}  // namespace hortator::parallel
