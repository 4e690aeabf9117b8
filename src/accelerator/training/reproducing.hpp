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
  Reproducing(int shards, comm::Communicator& communicator, c10::Device device);
  ~Reproducing();
  Reproducing(const Reproducing&) = delete;
  Reproducing& operator=(const Reproducing&) = delete;

  step::VirtualShards& shards() { return shards_; }

  /// Seeds the random numbers for the batch that `loader` is about to read, and begins the batch's shard. `seed` is the
  /// run's. In a loop within another loader's loop it only seeds.
  void before_batch(const LoaderBase& loader, const BatchTurn& turn, std::uint64_t seed);
  /// Throws UsageError if the gradients of the current step have already been summed.
  void check_backward_counts() const;
  void forget();

 private:
  step::VirtualShards shards_;
  c10::Device device_;
  std::optional<LoaderBase> leader_;  ///< whose batches are the shards
  int threads_before_;
  bool deterministic_before_;
};

}  // namespace hortator::accelerator
