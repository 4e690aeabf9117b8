#include "step/gradients/loss_check.hpp"

#include <ATen/ops/add.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <utility>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "step/precision/device_view.hpp"

namespace hortator::step {
namespace {

// A NaN that no arithmetic makes: its place was not written yet.
constexpr auto not_there = std::uint64_t{0x7ff8dead00000000};

std::atomic_ref<std::uint64_t> place_of(std::int64_t pass, const at::Tensor& losses) {
  return std::atomic_ref(static_cast<std::uint64_t*>(losses.mutable_data_ptr())[pass % LossCheck::max_late]);
}

bool has_come(std::int64_t pass, const at::Tensor& losses) {
  return place_of(pass, losses).load(std::memory_order_relaxed) != not_there;
}

}  // namespace

LossCheck::LossCheck(Warn warn) : warn_(warn ? std::move(warn) : Warn(log::write_warning)) {}

// What the device is still to write to must not become somebody else's: nobody waits for it here, so it stays.
LossCheck::~LossCheck() {
  for (std::int64_t pass = looked_at_; losses_.defined() && pass < passes_; ++pass) {
    if (!has_come(pass + 1, losses_)) static_cast<void>(losses_.unsafeReleaseTensorImpl());
  }
}

void LossCheck::see(const at::Tensor& loss) {
  ++passes_;
  if (has_warned_ || !loss.defined() || loss.numel() != 1 || !at::isFloatingType(loss.scalar_type())) return;
  if (!loss.is_cpu()) return leave_on_host(loss);
  if (!std::isfinite(loss.item<double>())) warn(passes_);
}

void LossCheck::leave_on_host(const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  if (!losses_.defined()) {
    losses_ = at::zeros({max_late}, at::kDouble).pin_memory();
    device_view_ = device_view(losses_, loss.device());
    looked_at_ = passes_ - 1;
  }
  look_at_arrived();
  if (has_warned_ || passes_ - looked_at_ > max_late) return;
  place_of(passes_, losses_).store(not_there, std::memory_order_relaxed);
  auto place = device_view_.select(0, passes_ % max_late);
  at::add_out(place, loss.detach().reshape({}), 0);
}

// In their order, as far as they have come.
void LossCheck::look_at_arrived() {
  for (; looked_at_ + 1 < passes_ && has_come(looked_at_ + 1, losses_); ++looked_at_) {
    const auto loss = place_of(looked_at_ + 1, losses_).load(std::memory_order_relaxed);
    if (!std::isfinite(std::bit_cast<double>(loss))) return warn(looked_at_ + 1);
  }
}

void LossCheck::warn(std::int64_t pass) {
  has_warned_ = true;
  warn_(
      text::concat("the loss of backward pass ", pass,
                   " is not a finite number: its gradients will spoil the model unless the step is left out (as fp16's "
                   "gradient scaler does). Later ones are not reported"));
}

}  // namespace hortator::step
