#pragma once

#include <hortator/data.hpp>
#include <optional>

#include "step/reproducible/virtual_shards.hpp"

namespace hortator::accelerator {

/// AcceleratorOptions::reproducible: the loaders' batches are shards of a step whose number does not depend on that of
/// the ranks, and random numbers, buffers and the order of all sums belong to the shard. One thread a rank and
/// deterministic algorithms only, as long as it lives: sums must not depend on the number of cores either.
class Reproducing {
 public:
  Reproducing(int shards, comm::Communicator& communicator, c10::Device device);
  ~Reproducing();
  Reproducing(const Reproducing&) = delete;
  Reproducing& operator=(const Reproducing&) = delete;

  step::VirtualShards& shards() { return shards_; }

  /// `loader` is about to read a batch, of a run of that seed. A loader that is looped over within the loop over
  /// another only draws numbers.
  void before_batch(const LoaderBase& loader, const BatchTurn& turn, std::uint64_t seed);
  /// Throws when the gradients of the step that is running have been summed.
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
