#pragma once

#include <memory>

#include "data/sharding/batch_shard.hpp"
#include "data/sharding/listing.hpp"

namespace hortator::data {

/// How the rows of one pass are distributed: how many rows each rank gets in a step, and how many of them are no
/// repetition. The same on all ranks.
class BatchDistribution {
 public:
  /// `listing` is null for a stream.
  BatchDistribution(BatchShard shard, std::shared_ptr<const Listing> listing)
      : shard_(shard), listing_(std::move(listing)) {}

  const BatchShard& shard() const { return shard_; }
  /// Sets the number of samples when a stream ends.
  void set_samples(std::int64_t samples) { shard_ = shard_.of(samples); }
  /// Sets the new rows of each rank in the latest step, if ranks read their own parts of a stream.
  void set_new_rows(std::vector<std::int64_t> new_rows) { rank_rows_ = std::move(new_rows); }

  std::int64_t rows(std::int64_t step, int rank) const;  ///< 0 if the rank has no batch
  std::int64_t new_rows(std::int64_t step, int rank) const;
  /// New rows of all ranks together.
  std::int64_t new_rows(std::int64_t step) const;
  /// The number of ranks that have a batch: always the first ones.
  int ranks(std::int64_t step) const;
  /// Whether all ranks have the same number of rows.
  bool is_even(std::int64_t step) const;
  /// Rows in the last step that are no repetition, if that step has repetitions; otherwise 0 or -1.
  std::int64_t remainder() const;

 private:
  bool varies() const { return listing_ && listing_->varies(); }

  BatchShard shard_;
  std::shared_ptr<const Listing> listing_;
  std::vector<std::int64_t> rank_rows_ = {};
};

}  // namespace hortator::data
