#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"
#include "step/reproducible/pairwise_sum.hpp"

namespace hortator::step {

/// The gradients of parameters of one type, taken shard by shard and summed along a tree that is the same however the
/// shards are spread over ranks.
class ShardGradients {
 public:
  explicit ShardGradients(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {}

  /// Takes what backward has left since the last shard, if anything.
  void take_shard();
  /// What backward has left is of no use any more.
  void forget() const;
  /// The step of all ranks is over. What is not of `shards` shards is of a step that was broken off, and goes.
  void close_step(int shards);
  bool empty() const { return steps_.empty(); }
  /// The parameters' gradients become the sums of all closed steps over all ranks, times `factor`. @collective
  void publish(comm::Communicator& communicator, double factor);

 private:
  at::Tensor flatten() const;
  at::Tensor sum_over_ranks(const at::Tensor& mine, comm::Communicator& communicator) const;

  std::vector<at::Tensor> parameters_;
  PairwiseSum shards_;
  std::vector<at::Tensor> steps_;
};

}  // namespace hortator::step
