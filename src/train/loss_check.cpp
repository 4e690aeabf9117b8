#include "train/loss_check.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>

#include "base/log.hpp"
#include "base/text.hpp"

namespace hortator::train {

LossCheck::LossCheck(Warn warn) : warn_(warn ? std::move(warn) : Warn(log::write_warning)) {}

void LossCheck::see(const at::Tensor& loss) {
  ++passes_;
  if (has_warned_ || !loss.defined() || loss.numel() != 1 || !at::isFloatingType(loss.scalar_type())) return;
  if (!loss.is_cpu()) return see_on_device(loss);
  if (!std::isfinite(loss.item<double>())) warn(passes_);
}

void LossCheck::see_on_device(const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions().dtype(at::kLong).device(loss.device());
  if (!copied_) {
    first_on_device_ = at::zeros({}, options);
    first_on_host_ = at::zeros({}, at::kLong).pin_memory();
    copied_.emplace(loss.device().type());
  }
  const auto is_first = at::isfinite(loss.detach().reshape({})).logical_or_(first_on_device_ > 0).logical_not_();
  first_on_device_ = at::where(is_first, at::full({}, passes_, options), first_on_device_);
  if (!copied_->query()) return;  // an earlier copy is still on its way
  if (const auto pass = first_on_host_.item<std::int64_t>(); pass > 0) return warn(pass);
  first_on_host_.copy_(first_on_device_, /*non_blocking=*/true);
  copied_->record(c10::impl::VirtualGuardImpl(loss.device().type()).getStream(loss.device()));
}

void LossCheck::warn(std::int64_t pass) {
  has_warned_ = true;
  warn_(
      text::concat("the loss of backward pass ", pass,
                   " is not a finite number: its gradients will spoil the model unless the step is left out (as fp16's "
                   "gradient scaler does). Later ones are not reported"));
}

}  // namespace hortator::train
