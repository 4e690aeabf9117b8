#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

namespace hortator::parallel {

class SharedStatistics;

/// What connects a layer to the ranks of its model.
struct NormConnection {
  std::weak_ptr<SharedStatistics> statistics = {};
  bool has_joined = false;  ///< by prepare()

  /// The statistics to use in training, or null where this rank has all samples. Throws UsageError if the layer was not
  /// prepared and there are other ranks, or if its Accelerator was destroyed.
  std::shared_ptr<SharedStatistics> require() const;
};

/// A layer's running statistics, which training moves.
struct RunningStatistics {
  at::Tensor mean = {};  ///< undefined if it keeps none
  at::Tensor variance = {};
  std::optional<double> momentum = {};
  at::Tensor batches = {};  ///< their number: without a momentum, each counts equally

  /// Moves them towards those of a batch.
  void move_towards(const at::Tensor& batch_mean, const at::Tensor& batch_variance) const;
};

/// A layer's weight and bias (both or none) and its eps.
struct NormScale {
  std::optional<at::Tensor> weight = {};
  std::optional<at::Tensor> bias = {};
  double eps = 0;
};

/// BatchNorm in training, by the mean and variance of the samples of all ranks. Moves the running statistics, unless
/// this is a recomputation. @collective, and so is backward where the input needs a gradient
at::Tensor normalize_jointly(const at::Tensor& input, const NormScale& scale, const RunningStatistics& running,
                             const std::shared_ptr<SharedStatistics>& statistics);

}  // namespace hortator::parallel
