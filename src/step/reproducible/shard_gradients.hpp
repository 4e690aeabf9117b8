#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "comm/communicator.hpp"
#include "step/reproducible/pairwise_sum.hpp"

namespace hortator::step {

/// The stages of a pipeline that read some parameters.
struct StageReaders {
  std::vector<int> here = {};  ///< those of this rank; empty without a pipeline
  int all = 1;
  comm::Communicator* ranks = nullptr;  ///< the ranks that have them; null if only this one has
};

/// Gradients of parameters of one type, taken shard by shard, and summed along a tree that does not depend on the
/// number of ranks.
class ShardGradients {
 public:
  explicit ShardGradients(std::vector<at::Tensor> parameters, StageReaders readers = {})
      : parameters_(std::move(parameters)), readers_(std::move(readers)) {}

  c10::Device device() const { return parameters_.front().device(); }
  bool are_read_in(int stage) const;
  /// Whether there are gradients since the last shard.
  bool has_gradients() const;
  /// Takes the gradients since the last call as those of this rank's shard `number`; zeros for parameters without one.
  /// Call it once for each shard and each stage here that reads them, in any order of shards.
  void take_shard(int number);
  /// Drops the gradients since the last shard.
  void forget() const;
  /// Drops all gradients.
  void restart();
  /// Ends the step. Drops its sum unless it has `shards` shards: the step was interrupted.
  void close_step(int shards);
  bool empty() const { return steps_.empty(); }
  int shards() const;                                            ///< of the step that is not closed
  int steps() const { return static_cast<int>(steps_.size()); }  ///< that are closed
  /// Adds what stages on other ranks have taken. Call it before publish(). @collective over StageReaders::ranks
  void add_other_stages();
  /// Sets the parameters' gradients to the sums of all closed steps over all ranks, times `factor`. @collective
  void publish(comm::Communicator& communicator, double factor);

 private:
  /// A closed step: the sum of its shards, or each of them until those of other stages are added.
  using Step = std::vector<at::Tensor>;

  at::Tensor flatten() const;
  at::Tensor sum_over_ranks(const at::Tensor& mine, comm::Communicator& communicator) const;

  std::vector<at::Tensor> parameters_;
  StageReaders readers_;
  PairwiseSum shards_;                  ///< if one stage reads the parameters
  std::map<int, at::Tensor> separate_;  ///< by number, if several do: one rank adds up a shard's gradients first
  std::vector<Step> steps_;
};

}  // namespace hortator::step
