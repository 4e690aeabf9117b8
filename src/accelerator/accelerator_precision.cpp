#include "step/precision/precision.hpp"

#include <algorithm>
#include <cmath>

#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "step/gradients/clip.hpp"
#include "step/precision/loss_scale.hpp"

namespace hortator {
namespace {

// Agrees, since gradients may differ between ranks if the program has changed them. @collective
void require_finite(const at::Tensor& norm, double norm_type, const mpi::Communicator& host) {
  mpi::all_or_none(host, [&] {
    const auto value = norm.item<double>();
    if (std::isfinite(value)) return;
    throw Error({.what = text::concat("The gradients' norm of type ", norm_type, " is ", value),
                 .why = "ClipOptions::error_if_nonfinite is set",
                 .hint = "look for a loss that is not finite, or unset error_if_nonfinite"});
  });
}

}  // namespace

Precision Accelerator::mixed_precision() const { return training_->control.precision(); }

Autocast Accelerator::autocast(const AutocastOptions& options) const {
  return Autocast(device().type(), step::autocast_type(mixed_precision()), options);
}

LossScale Accelerator::loss_scale() const {
  return training_->control.scaler() ? training_->control.scaler()->now() : LossScale{};
}

void Accelerator::unscale_gradients() { unscale_only({}); }

void Accelerator::unscale_only(const std::vector<Optimizer>& optimizers) {
  const CallSite site(__builtin_return_address(0));
  if (training_->control.is_partial()) return;
  training_->synchronise_gradients();
  for (const auto& optimizer : optimizers) optimizer.core().check_alive();
  for (const auto& optimizer : training_->prepared.optimizers()) {
    const auto is_it = [&](const Optimizer& one) { return &one.core() == optimizer.get(); };
    const bool wanted = optimizers.empty() || std::any_of(optimizers.begin(), optimizers.end(), is_it);
    if (wanted && optimizer->scaled() != nullptr) optimizer->scaled()->unscale();
  }
}

at::Tensor Accelerator::clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type,
                                        const ClipOptions& options) {
  const CallSite site(__builtin_return_address(0));
  step::check_limit(max_norm, "max_norm");
  training_->synchronise_gradients();
  if (!training_->control.is_partial()) training_->control.unscale_gradients_of(parameters);
  const at::NoGradGuard no_grad;
  const auto holders = training_->prepared.gradient_holders(parameters);
  const auto gradients = step::gradient_groups(holders.all());
  auto norm = holders.are_whole() ? step::total_norm(gradients, norm_type)
                                  : step::total_norm(holders, norm_type, training_->channels.ranks_of_norms());
  if (training_->control.is_partial()) return norm;
  if (options.error_if_nonfinite) require_finite(norm, norm_type, training_->host());
  step::scale_to_norm(gradients, norm, max_norm);
  return norm;
}

void Accelerator::clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value) {
  const CallSite site(__builtin_return_address(0));
  step::check_limit(clip_value, "clip_value");
  if (training_->control.is_partial()) return;
  training_->synchronise_gradients();
  training_->control.unscale_gradients_of(parameters);
  const at::NoGradGuard no_grad;
  step::clamp(step::gradient_groups(training_->prepared.gradient_holders(parameters).all()), clip_value);
}

bool Accelerator::optimizer_step_was_skipped() const {
  return std::any_of(training_->prepared.optimizers().begin(), training_->prepared.optimizers().end(),
                     [](const auto& optimizer) { return optimizer->step_was_skipped(); });
}

}  // namespace hortator
