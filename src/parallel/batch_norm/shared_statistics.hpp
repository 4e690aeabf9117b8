#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string_view>

#include "comm/communicator.hpp"

namespace hortator::parallel {

/// Sums over all ranks for normalisation layers, in forward and within backward.
///
/// Uses a communicator of its own: gradient buckets are under way on the model's communicator, where a sum would have
/// to wait for them. Ranks wait for these sums when they request them, and for buckets at the end of backward, in the
/// same order everywhere as long as they run the same graph.
class SharedStatistics {
 public:
  explicit SharedStatistics(std::unique_ptr<comm::Communicator> communicator)
      : communicator_(std::move(communicator)) {}

  int ranks() const { return communicator_->size(); }
  /// Replaces `values` by the sums over all ranks, bitwise the same on each. @collective
  void add_up(const at::Tensor& values) { communicator_->all_reduce(values, comm::ReduceOp::sum).wait(); }
  /// comm::Communicator::abandon: this rank stops taking part.
  bool abandon(std::string_view reason) noexcept { return communicator_->abandon(reason); }

 private:
  std::unique_ptr<comm::Communicator> communicator_;
};

/// Whether the module itself is a SyncBatchNorm, or a BatchNorm that synchronize_batch_norms() has marked.
bool is_synchronized_norm(const torch::nn::Module& module);
/// Whether the module, or one within it, has statistics to share.
bool has_synchronized_norms(const torch::nn::Module& module);
void join_synchronized_norms(torch::nn::Module& module, const std::shared_ptr<SharedStatistics>& statistics);

}  // namespace hortator::parallel
