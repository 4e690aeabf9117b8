#include "train/grad_scaler.hpp"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "base/log.hpp"
#include "train/loss_scale.hpp"

namespace hortator::train {

GradScaler::GradScaler(const GradScalerOptions& options, comm::Communicator& communicator, c10::Device device)
    : options_(options),
      communicator_(communicator),
      device_(device),
      now_{.scale = static_cast<float>(options.init_scale)} {}

// A loss in 16 bits would overflow by itself.
at::Tensor GradScaler::scaled(const at::Tensor& loss) const {
  const bool is_16_bit = at::isReducedFloatingType(loss.scalar_type());
  return (is_16_bit ? loss.to(at::kFloat) : loss) * now_.scale;
}

bool GradScaler::overflowed(const at::Tensor& not_finite) {
  if (uneven_ != nullptr) uneven_->announce(UnevenInputs::Collective::judge_gradients, 0);
  return judge(not_finite.to(device_));
}

void GradScaler::follow() { judge(at::zeros({1}, at::TensorOptions(device_).dtype(at::kFloat))); }

bool GradScaler::judge(const at::Tensor& not_finite) {
  const at::NoGradGuard no_grad;
  communicator_.all_reduce(not_finite, comm::ReduceOp::max).wait();
  const bool overflowed = not_finite.item<float>() > 0;
  now_ = next_scale(now_, overflowed, options_);
  ++steps_;
  if (overflowed) warn_of_no_end();
  return overflowed;
}

// Gradients overflow at a scale of 65536 now and then; those that still do below 1 are not finite by themselves.
void GradScaler::warn_of_no_end() {
  if (now_.scale >= 1 || std::exchange(warned_, true) || communicator_.rank() != 0) return;
  log::warn("step ", steps_, " was skipped, and the scale of the loss has fallen to ", now_.scale,
            ": the gradients are not finite at any scale (a loss that is NaN? weights that are too large for fp16?)");
}

StateDict GradScaler::state() const {
  StateDict state;
  state.put("scale", now_.scale);
  state.put("growth_tracker", now_.growth_tracker);
  return state;
}

void GradScaler::load(const StateDict& state) {
  now_ = {.scale = state.get<float>("scale"), .growth_tracker = state.get<std::int64_t>("growth_tracker")};
}

}  // namespace hortator::train
