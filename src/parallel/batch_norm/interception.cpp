#include "parallel/batch_norm/interception.hpp"

#include <ATen/ops/batch_norm_native.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/version.h>

#include <hortator/error.hpp>
#include <hortator/training/recompute.hpp>
#include <mutex>

#include "core/text/text.hpp"
#include "interception/composite_kernel.hpp"
#include "parallel/batch_norm/marked_norms.hpp"

namespace hortator::parallel {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

OptionalTensor defined(const OptionalTensor& tensor) { return tensor && tensor->defined() ? tensor : std::nullopt; }

// A recomputation must not move statistics again, and must save the same tensors.
OptionalTensor unmoved(const OptionalTensor& statistic) {
  return statistic && is_recomputing() ? OptionalTensor(statistic->clone()) : statistic;
}

at::Tensor batch_norm(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                      const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                      double momentum, double eps, bool cudnn_enabled) {
  const auto plain = [&](const OptionalTensor& mean, const OptionalTensor& variance) {
    return at::native::batch_norm(input, weight, bias, mean, variance, training, momentum, eps, cudnn_enabled);
  };
  const auto norm = training ? MarkedNorms::instance().find(running_mean, weight) : std::nullopt;
  if (!norm) return plain(running_mean, running_var);
  const auto variance = defined(running_var);
  const auto mean = variance ? running_mean : std::nullopt;  // a mean without a variance is a mark
  if (!norm->is_training) return plain(mean, variance);
  const auto statistics = norm->connection.require();
  if (statistics == nullptr) return plain(unmoved(mean), unmoved(variance));
  const auto running =
      mean ? RunningStatistics{.mean = *mean, .variance = *variance, .momentum = momentum} : RunningStatistics();
  return normalize_jointly(input, {.weight = defined(weight), .bias = defined(bias), .eps = eps}, running, statistics);
}

// LibTorch's own operator would find that the mark is not a mean of two channels.
void try_marked_layer() {
  torch::nn::BatchNorm1d norm(torch::nn::BatchNormOptions(2).affine(false).track_running_stats(false));
  MarkedNorms::instance().add(norm.ptr());
  norm->eval();
  const auto input = at::ones({2, 2});
  norm->forward(input);
  const c10::InferenceMode without_gradients;
  norm->forward(input);
}

void check_kernel() {
  try {
    const c10::InferenceMode ordinary(false);  // whatever the caller's mode
    try_marked_layer();
  } catch (const c10::Error& error) {
    throw Error({.what = text::concat("batch_norm of this LibTorch (", TORCH_VERSION,
                                      ") cannot be intercepted: ", error.what_without_backtrace()),
                 .why = "synchronize_batch_norms computes it over the batches of all ranks",
                 .hint = "use LibTorch 2.9 to 2.15, or declare the layers as SyncBatchNorm"});
  }
}

}  // namespace

void intercept_marked_norms() {
  static std::once_flag once;
  std::call_once(once, [] {
    interception::compute_composite<&batch_norm>("batch_norm");
    check_kernel();
  });
}

}  // namespace hortator::parallel
