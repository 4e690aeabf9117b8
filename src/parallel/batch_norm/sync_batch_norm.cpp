#include <ATen/ops/zeros_like.h>
#include <torch/nn/functional/batchnorm.h>

#include <hortator/error.hpp>
#include <hortator/parallel/sync_batch_norm.hpp>
#include <hortator/training/recompute.hpp>

#include "core/text/text.hpp"
#include "parallel/batch_norm/joint_norm.hpp"
#include "parallel/batch_norm/shared_statistics.hpp"

namespace hortator {
namespace {

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

parallel::RunningStatistics running_of(const detail::NormState& state) {
  if (!state.is_tracking()) return {};
  return {.mean = state.running_mean,
          .variance = state.running_var,
          .momentum = state.options.momentum(),
          .batches = state.num_batches_tracked};
}

// In a recomputation, copies replace statistics that must not change again: the same tensors are saved for backward.
at::Tensor plain(const at::Tensor& input, const detail::NormState& state) {
  const auto with = [&](const at::Tensor& mean, const at::Tensor& variance, double momentum) {
    return torch::nn::functional::detail::batch_norm(input, mean, variance, state.weight, state.bias,
                                                     state.is_training || !state.options.track_running_stats(),
                                                     momentum, state.options.eps());
  };
  if (!state.is_tracking()) return with(state.running_mean, state.running_var, 0);
  if (const auto momentum = state.options.momentum()) {
    const auto statistic = [](const at::Tensor& own) { return is_recomputing() ? own.clone() : own; };
    return with(statistic(state.running_mean), statistic(state.running_var), *momentum);
  }
  const auto mean = at::zeros_like(state.running_mean);
  const auto variance = at::zeros_like(state.running_var);
  auto output = with(mean, variance, 1);  // sets them to the batch's own statistics
  if (!is_recomputing()) running_of(state).move_towards(mean, variance);
  return output;
}

}  // namespace

namespace detail {

void NormState::begin_batch() const {
  if (is_tracking() && !is_recomputing()) num_batches_tracked += 1;
}

SynchronizedNorm::SynchronizedNorm() = default;
SynchronizedNorm::SynchronizedNorm(const SynchronizedNorm&) = default;
SynchronizedNorm& SynchronizedNorm::operator=(const SynchronizedNorm&) = default;
SynchronizedNorm::~SynchronizedNorm() = default;

void SynchronizedNorm::join(const std::shared_ptr<parallel::SharedStatistics>& statistics) {
  statistics_ = statistics;
  has_joined_ = true;
}

void SynchronizedNorm::check_dim(const at::Tensor& input, std::int64_t min_dim, std::int64_t max_dim) {
  if (input.dim() >= min_dim && input.dim() <= max_dim) return;
  throw UsageError(
      {.what = text::concat("SyncBatchNorm", max_dim - 2, "d got an input of ", text::count(input.dim(), "dimension")),
       .hint = min_dim == max_dim ? text::concat("use ", max_dim) : text::concat("use ", min_dim, " or ", max_dim)});
}

at::Tensor SynchronizedNorm::normalize(const at::Tensor& input, const NormState& state) const {
  if (!state.is_training) return plain(input, state);
  const auto statistics = parallel::NormConnection{.statistics = statistics_, .has_joined = has_joined_}.require();
  state.begin_batch();
  if (statistics == nullptr) return plain(input, state);
  return parallel::normalize_jointly(
      input, {.weight = optional(state.weight), .bias = optional(state.bias), .eps = state.options.eps()},
      running_of(state), statistics);
}

}  // namespace detail
}  // namespace hortator
