#pragma once

#include <memory>

#include "data/sharding/batch_shard.hpp"
#include "data/sharding/listing.hpp"

namespace hortator::data {

/// How one pass is dealt, in rows of batches: how many each rank gets in a step, and how many of them are no
/// repetition. The same on all ranks.
class Deal {
 public:
  /// `listing` is null for a stream.
  Deal(BatchShard shard, std::shared_ptr<const Listing> listing) : shard_(shard), listing_(std::move(listing)) {}

  const BatchShard& shard() const { return shard_; }
  /// A stream has come to its end.
  void learn(std::int64_t samples) { shard_ = shard_.of(samples); }
  /// Of ranks that read parts of their own, the latest step's new rows.
  void tell(std::vector<std::int64_t> new_rows) { told_ = std::move(new_rows); }

  std::int64_t rows(std::int64_t step, int rank) const;  ///< 0: it has no batch
  std::int64_t new_rows(std::int64_t step, int rank) const;
  /// Of all ranks together.
  std::int64_t new_rows(std::int64_t step) const;
  /// How many ranks have a batch: the first ones.
  int ranks(std::int64_t step) const;
  /// Whether all ranks have as many rows.
  bool is_even(std::int64_t step) const;
  /// Rows in the last step that are no repetition, where it has some; 0 or -1: it has none.
  std::int64_t remainder() const;

 private:
  bool varies() const { return listing_ && listing_->varies(); }

  BatchShard shard_;
  std::shared_ptr<const Listing> listing_;
  std::vector<std::int64_t> told_ = {};
};

}  // namespace hortator::data
