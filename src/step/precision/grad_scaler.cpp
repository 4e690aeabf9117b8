#include "step/precision/grad_scaler.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>

#include "core/call_site.hpp"
#include "core/log.hpp"
#include "step/precision/loss_scale.hpp"

namespace hortator::step {

GradScaler::GradScaler(const GradScalerOptions& options, comm::Communicator& communicator, c10::Device device)
    : options_(options),
      communicator_(communicator),
      device_(device),
      now_{.scale = static_cast<float>(options.init_scale)} {
  if (!is_late()) return;
  scale_ = at::zeros({}, at::TensorOptions(device_).dtype(at::kFloat));
  growth_tracker_ = at::zeros({}, at::TensorOptions(device_).dtype(at::kInt));
  put_on_device();
}

// A scaled loss would overflow in 16 bits.
at::Tensor GradScaler::scaled(const at::Tensor& loss) const {
  const bool is_16_bit = at::isReducedFloatingType(loss.scalar_type());
  const auto wide = is_16_bit ? loss.to(at::kFloat) : loss;
  return is_late() ? wide * scale_.to(loss.device()) : wide * now_.scale;
}

bool GradScaler::overflowed(const at::Tensor& not_finite) {
  announce();
  return judge(not_finite.to(device_));
}

// @collective
bool GradScaler::judge(const at::Tensor& not_finite) {
  agree_on(not_finite);
  const bool overflowed = not_finite.item<float>() > 0;
  note(overflowed);
  return overflowed;
}

void GradScaler::overflowed_later(const at::Tensor& not_finite, LateVerdict& verdict) {
  announce();
  judge_later(not_finite, verdict);
}

// @collective
void GradScaler::judge_later(const at::Tensor& not_finite, LateVerdict& verdict) {
  const at::NoGradGuard no_grad;
  const auto found = not_finite.to(device_);
  agree_on(found);
  at::_amp_update_scale_(scale_, growth_tracker_, found, options_.growth_factor, options_.backoff_factor,
                         options_.growth_interval);
  verdict.write(found);
}

void GradScaler::expect(const std::shared_ptr<LateVerdict>& verdict) {
  ++verdicts_;
  verdict->expect();
  expected_.push_back(verdict);
}

// `verdict` is passed by value, since the queue may hold its last reference.
bool GradScaler::apply_verdict(
    std::shared_ptr<const LateVerdict> verdict) {  // NOLINT(performance-unnecessary-value-param)
  while (std::find(expected_.begin(), expected_.end(), verdict) != expected_.end()) {
    note(expected_.front()->is_overflow());
    expected_.pop_front();
  }
  return verdict->is_overflow();
}

void GradScaler::apply_verdicts() {
  while (!expected_.empty()) apply_verdict(expected_.front());
}

void GradScaler::follow() {
  const auto mine = at::zeros({1}, at::TensorOptions(device_).dtype(at::kFloat));
  if (!is_late()) return static_cast<void>(judge(mine));
  apply_verdicts();
  if (!followed_) followed_ = std::make_shared<LateVerdict>(device_);
  judge_later(mine, *followed_);
  expect(followed_);
}

// Announces the verdict to ranks without batches, before the reduction. @collective
void GradScaler::announce() const {
  if (uneven_ != nullptr) uneven_->announce(parallel::UnevenInputs::Collective::judge_gradients, 0);
}

// @collective
void GradScaler::agree_on(const at::Tensor& not_finite) {
  const at::NoGradGuard no_grad;
  std::optional<AnyCallSite> anywhere;
  if (uneven_ != nullptr) anywhere.emplace();  // ranks without batches call this from another line
  (among_ != nullptr ? *among_ : communicator_).all_reduce(not_finite, comm::ReduceOp::max).wait();
}

void GradScaler::note(bool overflowed) {
  now_ = next_scale(now_, overflowed, options_);
  ++steps_;
  if (overflowed) warn_if_endless();
}

// Writes in place, since a recorded step reads the scale at that address.
void GradScaler::put_on_device() {
  if (!is_late()) return;
  const at::NoGradGuard no_grad;
  scale_.fill_(now_.scale);
  growth_tracker_.fill_(now_.growth_tracker);
}

// Gradients may overflow at a scale of 65536. If they still do below 1, they are not finite without any scale.
void GradScaler::warn_if_endless() {
  if (now_.scale >= 1 || std::exchange(warned_, true) || communicator_.rank() != 0) return;
  log::warn("step ", steps_, " was skipped, and the scale of the loss has fallen to ", now_.scale,
            ": the gradients are not finite at any scale (a loss that is NaN? weights that are too large for fp16?)");
}

void GradScaler::warn_of_scaled_step() {
  if (std::exchange(warned_of_scaled_step_, true) || communicator_.rank() != 0) return;
  log::warn(
      "an optimizer's parameters have changed while their gradients were still multiplied by the scale of the loss "
      "(fp16), about ",
      now_.scale, ": call step() of what prepare() returned, not of the optimizer itself");
}

StateDict GradScaler::state() const {
  StateDict state;
  state.put("scale", now_.scale);
  state.put("growth_tracker", now_.growth_tracker);
  state.put("growth_factor", options_.growth_factor);
  state.put("backoff_factor", options_.backoff_factor);
  state.put("growth_interval", options_.growth_interval);
  return state;
}

void GradScaler::load(const StateDict& state) {
  now_ = {.scale = state.get<float>("scale"), .growth_tracker = state.get<std::int64_t>("growth_tracker")};
  forget_expected();
  ++verdicts_;
  put_on_device();
}

}  // namespace hortator::step
