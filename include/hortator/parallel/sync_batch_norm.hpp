#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <cstddef>
#include <hortator/export.hpp>
#include <memory>

namespace hortator {

namespace parallel {
class SharedStatistics;
}

namespace detail {

/// A BatchNorm's tensors (undefined where it has none) and options.
struct NormState {
  const at::Tensor& weight;
  const at::Tensor& bias;
  at::Tensor& running_mean;
  at::Tensor& running_var;
  at::Tensor& num_batches_tracked;
  const torch::nn::BatchNormOptions& options;
  bool is_training;

  bool is_tracking() const { return is_training && options.track_running_stats(); }
  /// Counts a batch.
  void begin_batch() const;
};

/// The part of SyncBatchNorm that does not depend on its dimension.
class HORTATOR_API SynchronizedNorm {
 public:
  virtual ~SynchronizedNorm();

  /// Called by prepare(): computes statistics over the ranks of `statistics`, for as long as that lives.
  void join(const std::shared_ptr<parallel::SharedStatistics>& statistics);

 protected:
  SynchronizedNorm();
  SynchronizedNorm(const SynchronizedNorm&);
  SynchronizedNorm& operator=(const SynchronizedNorm&);

  at::Tensor normalize(const at::Tensor& input, const NormState& state) const;
  static void check_dim(const at::Tensor& input, std::int64_t min_dim, std::int64_t max_dim);

 private:
  std::weak_ptr<parallel::SharedStatistics> statistics_;
  bool has_joined_ = false;
};

/// D as in torch::nn::BatchNormNd: inputs have D + 2 dimensions, and for D = 1 also two.
template <std::size_t D, typename Derived>
class SyncBatchNormImplBase : public torch::nn::NormImplBase<D, Derived, torch::nn::BatchNormOptions>,
                              public SynchronizedNorm {
 public:
  using Base = torch::nn::NormImplBase<D, Derived, torch::nn::BatchNormOptions>;
  using Base::Base;

  /// @collective in training mode, and so is the backward pass.
  at::Tensor forward(const at::Tensor& input) {
    this->_check_input_dim(input);
    return normalize(input, {.weight = this->weight,
                             .bias = this->bias,
                             .running_mean = this->running_mean,
                             .running_var = this->running_var,
                             .num_batches_tracked = this->num_batches_tracked,
                             .options = this->options,
                             .is_training = this->is_training()});
  }

 protected:
  void _check_input_dim(const at::Tensor& input) override {
    constexpr auto max_dim = static_cast<std::int64_t>(D) + 2;
    check_dim(input, D == 1 ? 2 : max_dim, max_dim);
  }
};

}  // namespace detail

/// Drop-in replacements of torch::nn::BatchNorm1d, 2d and 3d (same options, same names in the state) with statistics
/// over the batches of all ranks together, in forward and backward: as if one rank computed on all samples. Ranks may
/// have different numbers of samples, or none. `prepare` of a model that contains them connects the ranks; all ranks
/// must run the same layers in the same order. In evaluation mode, and on one rank, they are plain BatchNorm. Where you
/// cannot change the type that a model declares, use synchronize_batch_norms().
class HORTATOR_API SyncBatchNorm1dImpl : public detail::SyncBatchNormImplBase<1, SyncBatchNorm1dImpl> {
 public:
  using detail::SyncBatchNormImplBase<1, SyncBatchNorm1dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm1d);

class HORTATOR_API SyncBatchNorm2dImpl : public detail::SyncBatchNormImplBase<2, SyncBatchNorm2dImpl> {
 public:
  using detail::SyncBatchNormImplBase<2, SyncBatchNorm2dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm2d);

class HORTATOR_API SyncBatchNorm3dImpl : public detail::SyncBatchNormImplBase<3, SyncBatchNorm3dImpl> {
 public:
  using detail::SyncBatchNormImplBase<3, SyncBatchNorm3dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm3d);

}  // namespace hortator
