#pragma once

#include <hortator/data.hpp>
#include <optional>

#include "step/reproducible/virtual_shards.hpp"

namespace hortator::accelerator {

/// Implements AcceleratorOptions::reproducible. Loaders' batches are shards of a step, whose number does not depend on
/// the number of ranks; random numbers, buffers and the order of all sums belong to the shard. As long as it lives,
/// each rank uses one thread and deterministic algorithms, since sums must not depend on the number of cores either.
class Reproducing {
 public:
  /// `joins`: whether a rank gets its shards of a step as one batch, for a pipeline.
  Reproducing(int shards, comm::Communicator& communicator, c10::Device device, bool joins);
  ~Reproducing();
  Reproducing(const Reproducing&) = delete;
  Reproducing& operator=(const Reproducing&) = delete;

  step::VirtualShards& shards() { return shards_; }
  const step::VirtualShards& shards() const { return shards_; }
  /// Batches of a rank in one step of all ranks, and those of them that are joined into one.
  int batches() const { return joined_ > 1 ? 1 : shards_.shards_per_rank(); }
  int joined() const { return joined_; }

  /// Seeds the random numbers for the batch that `loader` is about to read, and begins the batch's shard. `seed` is the
  /// run's. In a loop within another loader's loop it only seeds.
  void before_batch(const LoaderBase& loader, const BatchTurn& turn, std::uint64_t seed);
  /// Seeds the random numbers for one of the batches that are joined. Call it after before_batch().
  void before_part(int part) const;
  /// Whether shards of a step are being computed.
  bool is_in_step() const { return leader_ && leader_->iterating(); }
  /// The number of a part of the current batch among the shards of the step.
  int shard_of(int part) const { return static_cast<int>(leading_.first) + part; }
  /// What random numbers of a micro-batch depend on: the shard that it is. `trains`: of the step, and not of the batch
  /// that was read last.
  std::uint64_t key_of(int part, bool trains) const { return (trains ? leading_ : reading_).key_of(part); }
  /// Throws UsageError if the gradients of the current step have already been summed.
  void check_backward_counts() const;
  /// Throws UsageError if pipeline_step() has computed the gradients of the current batch.
  void refuse_after_pipeline() const;
  void forget();

 private:
  /// A batch's place in the run.
  struct BatchPlace {
    std::uint64_t step = 0;
    std::int64_t first = 0;  ///< of the step's shards
    std::uint64_t key_of(int part) const;
  };

  step::VirtualShards shards_;
  int joined_;
  c10::Device device_;
  std::optional<LoaderBase> leader_;  ///< whose batches are the shards
  BatchPlace reading_, leading_;
  int threads_before_;
  bool deterministic_before_;
};

}  // namespace hortator::accelerator
