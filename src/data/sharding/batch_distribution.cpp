#include "data/sharding/batch_distribution.hpp"

#include <algorithm>

namespace hortator::data {

std::int64_t BatchDistribution::rows(std::int64_t step, int rank) const {
  if (step >= shard_.size_of(rank)) return 0;
  const auto positions = shard_.batch(step, rank);
  return varies() ? listing_->rows(positions[0]) : positions.size();
}

std::int64_t BatchDistribution::new_rows(std::int64_t step, int rank) const {
  if (!rank_rows_.empty()) return rank_rows_[static_cast<std::size_t>(rank)];
  const auto positions = shard_.new_samples(step, rank);
  return varies() && positions > 0 ? rows(step, rank) : positions;
}

std::int64_t BatchDistribution::new_rows(std::int64_t step) const {
  std::int64_t sum = 0;
  for (int rank = 0; rank < shard_.spec().world; ++rank) sum += new_rows(step, rank);
  return sum;
}

int BatchDistribution::ranks(std::int64_t step) const {
  int ranks = shard_.spec().world;
  while (ranks > 0 && rows(step, ranks - 1) == 0) --ranks;
  return ranks;
}

bool BatchDistribution::is_even(std::int64_t step) const {
  if (!rank_rows_.empty()) return std::ranges::all_of(rank_rows_, [&](auto rows) { return rows == rank_rows_[0]; });
  if (shard_.spec().even && !varies()) return true;
  for (int rank = 1; rank < shard_.spec().world; ++rank) {
    if (rows(step, rank) != rows(step, 0)) return false;
  }
  return true;
}

std::int64_t BatchDistribution::remainder() const {
  const auto positions = shard_.remainder();
  if (!varies() || positions <= 0) return positions;
  return new_rows(shard_.size_of(0) - 1);
}

}  // namespace hortator::data
