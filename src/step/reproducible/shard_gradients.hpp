#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"
#include "step/reproducible/pairwise_sum.hpp"

namespace hortator::step {

/// Gradients of parameters of one type, taken shard by shard, and summed along a tree that does not depend on the
/// number of ranks.
class ShardGradients {
 public:
  explicit ShardGradients(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {}

  c10::Device device() const { return parameters_.front().device(); }
  /// Whether there are gradients since the last shard.
  bool has_gradients() const;
  /// Takes the gradients since the last shard; zeros for parameters without one.
  void take_shard();
  /// Drops the gradients since the last shard.
  void forget() const;
  /// Drops all gradients.
  void restart();
  /// Ends the step. Drops its sum unless it has `shards` shards: the step was interrupted.
  void close_step(int shards);
  bool empty() const { return steps_.empty(); }
  int shards() const { return shards_.terms(); }                 ///< of the step that is not closed
  int steps() const { return static_cast<int>(steps_.size()); }  ///< that are closed
  /// Sets the parameters' gradients to the sums of all closed steps over all ranks, times `factor`. @collective
  void publish(comm::Communicator& communicator, double factor);

 private:
  at::Tensor flatten() const;
  at::Tensor sum_over_ranks(const at::Tensor& mine, comm::Communicator& communicator) const;

  std::vector<at::Tensor> parameters_;
  PairwiseSum shards_;
  std::vector<at::Tensor> steps_;
};

}  // namespace hortator::step
