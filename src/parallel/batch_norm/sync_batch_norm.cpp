#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>
#include <torch/nn/functional/batchnorm.h>

#include <hortator/error.hpp>
#include <hortator/parallel/sync_batch_norm.hpp>
#include <hortator/training/recompute.hpp>

#include "core/text/text.hpp"
#include "parallel/batch_norm/shared_statistics.hpp"
#include "runtime/run_folder.hpp"

namespace hortator {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Statistics of all ranks' samples, one number for each channel, in the type in which the layer computes.
struct Moments {
  at::Tensor mean;
  at::Tensor variance;  ///< biased
  at::Tensor count;     ///< values for each channel: one number, on the device, so that nothing waits for it
};

// 16-bit numbers are added up and normalised in 32 bits.
at::Tensor computable(const at::Tensor& tensor) {
  const bool is_short = tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
  return is_short ? tensor.to(at::kFloat) : tensor;
}

std::vector<std::int64_t> all_but_channels(const at::Tensor& input) {
  std::vector<std::int64_t> dims = {0};
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  return dims;
}

at::Tensor by_channel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = -1;
  return values.view(shape);
}

std::int64_t samples_a_channel(const at::Tensor& input) {
  return input.size(1) == 0 ? 0 : input.numel() / input.size(1);
}

// One reduction is enough: sums of squares are computed from each rank's variance in fp64, so subtracting the square of
// the mean again loses precision at 1e-16, not at the input's precision.
at::Tensor own_sums(const at::Tensor& input) {
  const auto channels = input.size(1);
  const auto options = input.options().dtype(at::kDouble);
  const auto count = static_cast<double>(samples_a_channel(input));
  if (count == 0) return at::zeros({2 * channels + 1}, options);
  const auto [variance, mean] = at::var_mean(computable(input), all_but_channels(input), /*correction=*/0);
  const auto exact = mean.to(at::kDouble);
  return at::cat({exact * count, (variance.to(at::kDouble) + exact.square()) * count, at::full({1}, count, options)});
}

// Only on the CPU: the host would have to wait for a device.
void check_count(const at::Tensor& count) {
  if (!count.is_cpu() || count.item<double>() > 1) return;
  throw UsageError({.what = text::concat("SyncBatchNorm got ", count.item<std::int64_t>(),
                                         " values a channel on all ranks together"),
                    .why = "in training mode it needs more than one",
                    .hint = "use larger batches, or eval()"});
}

// @collective
Moments moments_of(const at::Tensor& input, parallel::SharedStatistics& statistics) {
  const at::NoGradGuard no_grad;
  const auto channels = input.size(1);
  const auto sums = own_sums(input);
  statistics.add_up(sums);
  const auto count = sums.narrow(0, 2 * channels, 1);
  check_count(count);
  const auto type = computable(input).scalar_type();
  const auto mean = sums.narrow(0, 0, channels) / count;
  const auto variance = (sums.narrow(0, channels, channels) / count - mean.square()).clamp_min(0);
  return {.mean = mean.to(type), .variance = variance.to(type), .count = count};
}

/// Passes an Accelerator's statistics to the backward pass, which may run after the Accelerator is destroyed.
struct Capsule final : torch::CustomClassHolder {
  explicit Capsule(std::weak_ptr<parallel::SharedStatistics> held) : statistics(std::move(held)) {}
  std::weak_ptr<parallel::SharedStatistics> statistics;
};

std::shared_ptr<parallel::SharedStatistics> alive(const std::weak_ptr<parallel::SharedStatistics>& statistics) {
  if (auto held = statistics.lock()) return held;
  throw UsageError(
      {.what = "SyncBatchNorm is used in training after its Accelerator was destroyed or has freed its model",
       .why = "the ranks are no longer connected",
       .hint = "keep the Accelerator alive, prepare the model again, or use eval()"});
}

using OptionalTensor = std::optional<at::Tensor>;

OptionalTensor optional(const at::Tensor& tensor) { return tensor.defined() ? OptionalTensor(tensor) : std::nullopt; }

OptionalTensor as_type(const OptionalTensor& tensor, at::ScalarType type) {
  return tensor ? OptionalTensor(tensor->to(type)) : std::nullopt;
}

struct Normalize : torch::autograd::Function<Normalize> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const OptionalTensor& weight,
                            const OptionalTensor& bias, const Moments& moments, double eps,
                            const std::weak_ptr<parallel::SharedStatistics>& statistics) {
    context->save_for_backward(
        {input, weight.value_or(at::Tensor()), moments.mean, (moments.variance + eps).rsqrt(), moments.count});
    context->saved_data["statistics"] = c10::IValue::make_capsule(c10::make_intrusive<Capsule>(statistics));
    if (input.numel() == 0) return at::empty_like(input);
    // With moments from outside it is what BatchNorm does in evaluation: one pass over the input.
    const auto type = moments.mean.scalar_type();
    return at::batch_norm(input, as_type(weight, type), as_type(bias, type), moments.mean, moments.variance,
                          /*training=*/false, /*momentum=*/0, eps, /*cudnn_enabled=*/false);
  }

  // @collective where the input needs a gradient, which is so on all ranks or on none.
  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const auto& [input, weight, mean, inverse, count] = std::tie(saved[0], saved[1], saved[2], saved[3], saved[4]);
    const auto gradient = computable(outputs[0]);
    const auto centered = computable(input) - by_channel(mean, input);
    const auto dims = all_but_channels(input);
    const auto sum = gradient.sum(dims);
    const auto sum_centered = (gradient * centered).sum(dims);

    variable_list gradients(6);
    if (context->needs_input_grad(0)) {
      const auto sums = at::cat({sum, sum_centered}).to(at::kDouble);
      const auto held = context->saved_data["statistics"].toCapsule();
      alive(static_cast<const Capsule&>(*held).statistics)->add_up(sums);
      const auto means = (sums / count).to(mean.scalar_type()).view({2, -1});
      const auto slope = inverse.square() * means[1];
      const auto scale = weight.defined() ? inverse * weight.to(inverse.scalar_type()) : inverse;
      gradients[0] = (gradient - by_channel(means[0], input) - centered * by_channel(slope, input))
                         .mul_(by_channel(scale, input))
                         .to(input.scalar_type());
    }
    if (weight.defined()) {  // the bias is defined as well
      gradients[1] = (sum_centered * inverse).to(weight.scalar_type());
      gradients[2] = sum.to(weight.scalar_type());
    }
    return gradients;
  }
};

// Without a momentum the running statistics are the mean over all batches. The number of batches stays on the device:
// the host would have to wait for it, and it also counts batches that are loaded or replayed by a recorded step.
at::Tensor equal_share(const detail::NormState& state, at::ScalarType type) {
  return state.num_batches_tracked.to(at::kDouble).reciprocal().to(type);
}

// As in BatchNorm, without new versions: backward may still need their values of the last forward pass.
void update_running(const detail::NormState& state, const at::Tensor& mean, const at::Tensor& unbiased_variance) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView unnoticed;
  const auto move = [&](const at::Tensor& running, const at::Tensor& batch) {
    const auto type = running.scalar_type();
    if (const auto momentum = state.options.momentum()) {
      running.lerp_(batch.to(type), *momentum);
    } else {
      running.lerp_(batch.to(type), equal_share(state, type));
    }
  };
  move(state.running_mean, mean);
  move(state.running_var, unbiased_variance);
}

at::Tensor unbiased(const Moments& moments) {
  return moments.variance * (moments.count / (moments.count - 1)).to(moments.variance.scalar_type());
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
  if (!is_recomputing()) update_running(state, mean, variance);
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
  if (!has_joined_ && runtime::current_run().world_size > 1) {
    throw UsageError({.what = "A SyncBatchNorm was not prepared and is used in training",
                      .why = "it is not connected to the other ranks and would use only this rank's samples",
                      .hint = "prepare the model before its first forward pass"});
  }
  const auto statistics = has_joined_ ? alive(statistics_) : nullptr;
  state.begin_batch();
  if (statistics == nullptr || statistics->ranks() == 1) return plain(input, state);
  const auto moments = moments_of(input, *statistics);
  if (state.is_tracking() && !is_recomputing()) update_running(state, moments.mean, unbiased(moments));
  return Normalize::apply(input, optional(state.weight), optional(state.bias), moments, state.options.eps(),
                          statistics_);
}

}  // namespace detail
}  // namespace hortator
