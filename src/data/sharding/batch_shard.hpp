#pragma once

#include <cstdint>
#include <limits>

/// How the batches of one pass are distributed to the ranks, as positions of a global order that all ranks share.
namespace hortator::data {

/// The number of samples of a stream whose end has not been reached.
constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max() / 4;

struct ShardSpec {
  std::int64_t samples = 0;     ///< positions of the global order
  std::int64_t start = 0;       ///< positions before it were handed out earlier, by any number of ranks
  std::int64_t batch_size = 1;  ///< of one rank; with `split`, of all ranks together
  int rank = 0;
  int world = 1;
  int parts = 1;       ///< each rank acts as this many virtual ranks, one after the other
  bool split = false;  ///< each batch is cut into a slice for every rank; otherwise ranks get whole batches in turn
  bool even =
      true;  ///< all ranks get the same number of full batches: the last ones are filled from the first positions
  bool spread = false;     ///< the last step is divided into equal slices as short as possible
  bool drop_last = false;  ///< samples that do not fill a batch on every rank are left out
};

/// The positions of one batch: consecutive, continuing at 0 after the last.
class Positions {
 public:
  Positions(std::int64_t begin, std::int64_t count, std::int64_t samples)
      : begin_(begin), count_(count), samples_(samples) {}

  std::int64_t size() const { return count_; }
  std::int64_t operator[](std::int64_t i) const { return (begin_ + i) % samples_; }

 private:
  std::int64_t begin_;
  std::int64_t count_;
  std::int64_t samples_;
};

/// Computes the batches of each rank: pure arithmetic, O(1) in memory and time for orders of any length. For batches of
/// varying size, plan over the numbers of the batches, with batch_size 1.
class BatchShard {
 public:
  /// Throws UsageError for a batch size below 1 and for one that cannot be split over the ranks.
  explicit BatchShard(const ShardSpec& spec);

  const ShardSpec& spec() const { return spec_; }
  bool is_endless() const { return spec_.samples == endless; }
  /// The same shard with another number of samples, for when a stream ends.
  BatchShard of(std::int64_t samples) const;

  std::int64_t size() const { return size_; }  ///< batches of this rank
  std::int64_t size_of(int rank) const;
  Positions batch(std::int64_t step) const { return batch(step, spec_.rank); }  ///< 0 <= step < size()
  Positions batch(std::int64_t step, int rank) const;                           ///< 0 <= step < size_of(rank)

  Positions first_batch() const { return {0, slice_, spec_.samples}; }  ///< of the order, wherever this begins

  std::int64_t total_batch_size() const { return total_batch_size_; }  ///< of all ranks together
  std::int64_t slice() const { return slice_; }                        ///< of one virtual rank
  /// The virtual rank that the batch belongs to.
  std::int64_t virtual_rank(std::int64_t step) const { return virtual_rank(step, spec_.rank); }
  /// The first position of the global step that batch `step` belongs to.
  std::int64_t begin_of(std::int64_t step) const { return spec_.start + step / spec_.parts * total_batch_size_; }
  /// The rank that gets `position` in a full step.
  int rank_at(std::int64_t position) const {
    return static_cast<int>((position - spec_.start) % total_batch_size_ / slice_ / spec_.parts);
  }
  /// The first position that no rank has consumed after `steps` batches on each rank. Steps with only some of their
  /// parts done do not count.
  std::int64_t consumed(std::int64_t steps) const;
  /// Samples in the last global step that are no repetition; 0: all of them; -1: all of them, since incomplete steps
  /// are dropped.
  std::int64_t remainder() const;
  /// Samples in the rank's batch number `step` that are no repetition. They come first when batches are joined in rank
  /// order.
  std::int64_t new_samples(std::int64_t step, int rank) const;

 private:
  std::int64_t virtual_rank(std::int64_t step, int rank) const {
    return std::int64_t{rank} * spec_.parts + step % spec_.parts;
  }
  std::int64_t slice_in(std::int64_t step) const;
  std::int64_t begin_of(std::int64_t step, int rank) const {
    return begin_of(step) + virtual_rank(step, rank) * slice_in(step);
  }

  ShardSpec spec_;
  std::int64_t virtual_ranks_;  ///< of all ranks
  std::int64_t total_batch_size_;
  std::int64_t slice_;  ///< positions of one virtual rank in a global step
  std::int64_t size_;
};

}  // namespace hortator::data
