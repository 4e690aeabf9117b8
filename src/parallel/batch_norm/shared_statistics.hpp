#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string_view>

#include "comm/communicator.hpp"

namespace hortator::parallel {

/// Sums over all ranks for normalisation layers, in forward and in the middle of backward.
///
/// On a communicator of its own: gradient buckets are under way on the model's meanwhile, and a sum that came after
/// them there would have to wait for them. Ranks wait for these sums where they ask for them, and for buckets at the
/// end of backward, in the same order everywhere as long as they run the same graph.
class SharedStatistics {
 public:
  explicit SharedStatistics(std::unique_ptr<comm::Communicator> communicator)
      : communicator_(std::move(communicator)) {}

  int ranks() const { return communicator_->size(); }
  /// `values` become the sums over all ranks, bitwise the same on each. @collective
  void add_up(const at::Tensor& values) { communicator_->all_reduce(values, comm::ReduceOp::sum).wait(); }
  /// This rank takes part no more: comm::Communicator::abandon.
  bool abandon(std::string_view reason) noexcept { return communicator_->abandon(reason); }

 private:
  std::unique_ptr<comm::Communicator> communicator_;
};

/// Does a module of it have statistics to share?
bool has_synchronized_norms(const torch::nn::Module& module);
void join_synchronized_norms(const torch::nn::Module& module, const std::shared_ptr<SharedStatistics>& statistics);

}  // namespace hortator::parallel
