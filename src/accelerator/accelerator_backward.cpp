#include <ATen/ops/full.h>

#include <cmath>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/reproducing.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"

namespace hortator {

bool Accelerator::sync_gradients() const { return training_->control.sync_gradients(); }
void Accelerator::set_sync_gradients(bool sync) { training_->control.accumulation().set_sync_gradients(sync); }
std::int64_t Accelerator::gradient_accumulation_steps() const { return training_->control.accumulation().steps(); }
void Accelerator::set_gradient_accumulation_steps(std::int64_t steps) {
  training_->control.accumulation().set_steps(steps);
}

bool Accelerator::begin_micro_step() {
  const auto* loader = training_->prepared.active_loader();
  if (loader == nullptr || loader->begins_step())
    training_->control.accumulation().begin_micro_step(loader != nullptr && loader->in_last_step());
  return !training_->control.accumulation().keeps_gradients();
}

void Accelerator::backward(const at::Tensor& loss, const BackwardOptions& options) {
  const CallSite site(__builtin_return_address(0));
  if (const auto* reproducing = training_->control.reproducing()) reproducing->refuse_after_pipeline();
  training_->control.expect_scaled_gradients();
  const auto steps = training_->control.accumulation().steps();
  training_->control.loss_weights().run_plain(steps == 1 ? loss : loss / steps, [&](const at::Tensor& scaled) {
    training_->backward(scaled, {.loss = loss.detach()}, options.retain_graph);
  });
}

void Accelerator::backward(const at::Tensor& loss_sum, const at::Tensor& count, const BackwardOptions& options) {
  const CallSite site(__builtin_return_address(0));
  if (count.numel() != 1) {
    throw UsageError({.what = text::concat("backward(loss_sum, count) got a count of shape ", count.sizes()),
                      .why = "it is the number of losses that were added up: one number",
                      .hint = "pass count.sum()"});
  }
  if (const auto* reproducing = training_->control.reproducing()) reproducing->refuse_after_pipeline();
  training_->control.expect_scaled_gradients();
  const auto number = count.detach().reshape({}).to(loss_sum.device(), at::kDouble);
  const auto* const apart = training_->control.among();
  const auto& ranks = apart != nullptr ? *apart : training_->averaging();
  training_->control.loss_weights().run(
      loss_sum, number, sync_gradients(), ranks.communicator_of(loss_sum), [&](const at::Tensor& scaled) {
        training_->backward(scaled, {.loss = loss_sum.detach(), .count = number}, options.retain_graph);
      });
}

void Accelerator::backward(const at::Tensor& loss_sum, double count, const BackwardOptions& options) {
  const CallSite site(__builtin_return_address(0));
  if (!(count >= 0) || std::isinf(count)) {
    throw UsageError({.what = text::concat("backward(loss_sum, count) got a count of ", count),
                      .why = "it is the number of losses that were added up",
                      .hint = "pass the number of tokens or samples in loss_sum, 0 for none"});
  }
  backward(loss_sum, at::full({}, count, loss_sum.options().dtype(at::kDouble).requires_grad(false)), options);
}

}  // namespace hortator
