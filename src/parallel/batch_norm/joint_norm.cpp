#include "parallel/batch_norm/joint_norm.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <hortator/error.hpp>
#include <hortator/training/recompute.hpp>

#include "parallel/batch_norm/batch_moments.hpp"
#include "parallel/batch_norm/shared_statistics.hpp"
#include "parallel/mesh/current_mesh.hpp"
#include "parallel/mesh/mesh.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor by_channel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = -1;
  return values.view(shape);
}

/// Passes an Accelerator's statistics to the backward pass, which may run after the Accelerator is destroyed.
struct HeldStatistics final : torch::CustomClassHolder {
  explicit HeldStatistics(std::weak_ptr<SharedStatistics> held) : statistics(std::move(held)) {}
  std::weak_ptr<SharedStatistics> statistics;
};

std::shared_ptr<SharedStatistics> alive(const std::weak_ptr<SharedStatistics>& statistics) {
  if (auto held = statistics.lock()) return held;
  throw UsageError(
      {.what =
           "A synchronised BatchNorm is used in training after its Accelerator was destroyed or has freed its model",
       .why = "the ranks are no longer connected",
       .hint = "keep the Accelerator alive, prepare the model again, or use eval()"});
}

using OptionalTensor = std::optional<at::Tensor>;

OptionalTensor as_type(const OptionalTensor& tensor, at::ScalarType type) {
  return tensor ? OptionalTensor(tensor->to(type)) : std::nullopt;
}

struct Normalize : torch::autograd::Function<Normalize> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const OptionalTensor& weight,
                            const OptionalTensor& bias, const BatchMoments& moments, double eps,
                            const std::weak_ptr<SharedStatistics>& statistics) {
    context->save_for_backward(
        {input, weight.value_or(at::Tensor()), moments.mean, (moments.variance + eps).rsqrt(), moments.count});
    context->saved_data["statistics"] = c10::IValue::make_capsule(c10::make_intrusive<HeldStatistics>(statistics));
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
    const auto gradient = widened(outputs[0]);
    const auto centered = widened(input) - by_channel(mean, input);
    const auto dims = all_but_channels(input);
    const auto sum = gradient.sum(dims);
    const auto sum_centered = (gradient * centered).sum(dims);

    variable_list gradients(6);
    if (context->needs_input_grad(0)) {
      const auto sums = at::cat({sum, sum_centered}).to(at::kDouble);
      const auto held = context->saved_data["statistics"].toCapsule();
      alive(static_cast<const HeldStatistics&>(*held).statistics)->add_up(sums);
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
at::Tensor equal_share(const at::Tensor& batches, at::ScalarType type) {
  return batches.to(at::kDouble).reciprocal().to(type);
}

// With whom prepare() would connect it. Before an Accelerator is made, only the run knows of other ranks.
int ranks_of_run() {
  const auto* mesh = find_current_mesh();
  return mesh != nullptr ? mesh->averaging().size() : runtime::current_run().world_size;
}

}  // namespace

std::shared_ptr<SharedStatistics> NormConnection::require() const {
  if (has_joined) {
    auto held = alive(statistics);
    return held->ranks() == 1 ? nullptr : held;
  }
  if (ranks_of_run() == 1) return nullptr;
  throw UsageError({.what = "A synchronised BatchNorm was not prepared and is used in training",
                    .why = "it is not connected to the other ranks and would use only this rank's samples",
                    .hint = "prepare the model before its first forward pass, and call synchronize_batch_norms before "
                            "that"});
}

// As in BatchNorm, without new versions: backward may still need their values of the last forward pass.
void RunningStatistics::move_towards(const at::Tensor& batch_mean, const at::Tensor& batch_variance) const {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView unnoticed;
  const auto move = [&](const at::Tensor& own, const at::Tensor& batch) {
    const auto type = own.scalar_type();
    if (momentum) {
      own.lerp_(batch.to(type), *momentum);
    } else {
      own.lerp_(batch.to(type), equal_share(batches, type));
    }
  };
  move(mean, batch_mean);
  move(variance, batch_variance);
}

at::Tensor normalize_jointly(const at::Tensor& input, const NormScale& scale, const RunningStatistics& running,
                             const std::shared_ptr<SharedStatistics>& statistics) {
  const auto moments = moments_of(input, *statistics);
  if (running.mean.defined() && !is_recomputing()) running.move_towards(moments.mean, moments.unbiased_variance());
  return Normalize::apply(input, scale.weight, scale.bias, moments, scale.eps,
                          std::weak_ptr<SharedStatistics>(statistics));
}

}  // namespace hortator::parallel
