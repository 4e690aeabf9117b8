#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/step_control.hpp"
#include "step/gradients/protection.hpp"
#include "step/precision/grad_scaler.hpp"
#include "step/precision/precision.hpp"

#include <algorithm>
#include <cmath>

#include "accelerator/training/clipping.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"
#include "step/gradients/clip.hpp"
#include "step/precision/loss_scale.hpp"

namespace hortator {

Precision Accelerator::mixed_precision() const { return training_->control.precision(); }

Autocast Accelerator::autocast() const { return autocast(training_->options().autocast); }

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
  return accelerator::clip_norm(*training_, parameters, max_norm, norm_type, options);
}

void Accelerator::clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value) {
  const CallSite site(__builtin_return_address(0));
  accelerator::clip_value(*training_, parameters, clip_value);
}

std::int64_t Accelerator::rollbacks() const {
  const auto* const protection = training_->control.protection();
  return protection == nullptr ? 0 : protection->rollbacks();
}

bool Accelerator::optimizer_step_was_skipped() const {
  return std::any_of(training_->prepared.optimizers().begin(), training_->prepared.optimizers().end(),
                     [](const auto& optimizer) { return optimizer->step_was_skipped(); });
}

}  // namespace hortator
