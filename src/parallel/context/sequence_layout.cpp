#include "parallel/context/sequence_layout.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::parallel {

SequenceLayout::SequenceLayout(std::int64_t length, int ranks) : length_(length), ranks_(ranks) {
  if (ranks == 1 || length >= 2 * ranks) return;
  throw UsageError(
      {.what = text::concat("A sequence of ", text::count(length, "token"), " was to be divided over ",
                            text::count(ranks, "rank")),
       .why = "each rank gets a chunk of its first and one of its second half",
       .hint = text::concat("use sequences of at least ", 2 * ranks, " tokens, or fewer ranks along context")});
}

std::vector<core::Range> SequenceLayout::ranges(int rank) const {
  if (ranks_ == 1) return {{0, length_}};
  return {core::balanced(length_, 2 * ranks_, rank), core::balanced(length_, 2 * ranks_, 2 * ranks_ - 1 - rank)};
}

std::int64_t SequenceLayout::size(int rank) const {
  std::int64_t size = 0;
  for (const auto& range : ranges(rank)) size += range.size();
  return size;
}

std::vector<std::int64_t> SequenceLayout::sizes() const {
  std::vector<std::int64_t> sizes;
  for (int rank = 0; rank < ranks_; ++rank) sizes.push_back(size(rank));
  return sizes;
}

std::vector<SequenceLayout::Move> SequenceLayout::moves() const {
  std::vector<Move> moves;
  std::int64_t begin = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    for (const auto& range : ranges(rank)) {
      moves.push_back({.in_rank_order = begin, .in_sequence = range});
      begin += range.size();
    }
  }
  std::ranges::sort(moves, {}, [](const Move& move) { return move.in_sequence.begin; });
  return moves;
}

}  // namespace hortator::parallel
