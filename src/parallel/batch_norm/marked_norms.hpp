#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "parallel/batch_norm/joint_norm.hpp"

namespace hortator::parallel {

/// Whether it is a torch::nn::BatchNorm1d, 2d or 3d, or derived from one.
bool is_batch_norm(const torch::nn::Module& module);

/// The BatchNorm layers of this process that synchronize_batch_norms() has marked, found by a tensor with which each
/// calls its operator. Threads may use it at the same time.
class MarkedNorms {
 public:
  struct Found {
    bool is_training;
    NormConnection connection;
  };

  static MarkedNorms& instance();

  /// `norm` must be a BatchNorm. One that keeps no tensors gets an empty one in place of its running mean: only the
  /// operator sees it, because it is not registered.
  void add(const std::shared_ptr<torch::nn::Module>& norm);
  bool contains(const torch::nn::Module& norm) const;
  /// NormConnection of a marked layer.
  void join(torch::nn::Module& norm, const std::shared_ptr<SharedStatistics>& statistics);

  /// The layer that calls aten::batch_norm with this running mean, or with this weight and no mean.
  std::optional<Found> find(const std::optional<at::Tensor>& mean, const std::optional<at::Tensor>& weight) const;

 private:
  struct Mark;
  using Marks = std::unordered_map<const void*, std::shared_ptr<Mark>>;

  void index(torch::nn::Module& norm, const std::shared_ptr<Mark>& mark);

  mutable std::shared_mutex mutex_;
  Marks by_module_;
  Marks by_tensor_;
};

}  // namespace hortator::parallel
