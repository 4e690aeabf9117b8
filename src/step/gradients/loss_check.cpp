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
#include "machine/device/copy_bytes.hpp"

namespace hortator::step {
namespace {

// A NaN that no arithmetic produces. Marks an entry that the device has not written yet.
constexpr auto not_written = std::uint64_t{0x7ff8dead00000000};

std::atomic_ref<std::uint64_t> entry_of(std::int64_t pass, const at::Tensor& losses) {
  return std::atomic_ref(static_cast<std::uint64_t*>(losses.mutable_data_ptr())[pass % LossCheck::max_late]);
}

bool has_arrived(std::int64_t pass, const at::Tensor& losses) {
  return entry_of(pass, losses).load(std::memory_order_relaxed) != not_written;
}

}  // namespace

LossCheck::LossCheck(Warn warn) : warn_(warn ? std::move(warn) : Warn(log::write_warning)) {}

// The device may still write to this memory. The destructor does not wait for it, and leaks the memory instead.
LossCheck::~LossCheck() {
  for (std::int64_t pass = checked_; losses_.defined() && pass < passes_; ++pass) {
    if (!has_arrived(pass + 1, losses_)) static_cast<void>(losses_.unsafeReleaseTensorImpl());
  }
}

void LossCheck::check(const at::Tensor& loss) {
  ++passes_;
  if (has_warned_ || !loss.defined() || loss.numel() != 1 || !at::isFloatingType(loss.scalar_type())) return;
  if (!loss.is_cpu()) return write_to_host(loss);
  if (!std::isfinite(loss.item<double>())) warn(passes_);
}

void LossCheck::write_to_host(const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  if (!losses_.defined()) {
    losses_ = at::zeros({max_late}, at::kDouble).pin_memory();
    device_view_ = machine::byte_view(losses_.mutable_data_ptr(), losses_.nbytes(), loss.device()).view(at::kDouble);
    checked_ = passes_ - 1;
  }
  check_arrived();
  if (has_warned_ || passes_ - checked_ > max_late) return;
  entry_of(passes_, losses_).store(not_written, std::memory_order_relaxed);
  auto entry = device_view_.select(0, passes_ % max_late);
  const auto number = loss.detach().reshape({});
  if (number.device() != entry.device()) {  // of another device than the first loss
    entry.copy_(number, /*non_blocking=*/true);
  } else {
    // one kernel, which converts; with the number 0, LibTorch would copy the sum
    at::add_out(entry, number, at::zeros({}, at::kDouble));
  }
}

// Checks losses in their order, up to the first that has not arrived.
void LossCheck::check_arrived() {
  for (; checked_ + 1 < passes_ && has_arrived(checked_ + 1, losses_); ++checked_) {
    const auto loss = entry_of(checked_ + 1, losses_).load(std::memory_order_relaxed);
    if (!std::isfinite(std::bit_cast<double>(loss))) return warn(checked_ + 1);
  }
}

void LossCheck::warn(std::int64_t pass) {
  has_warned_ = true;
  warn_(text::concat(
      "the loss of backward pass ", pass,
      " is not a finite number: its gradients will corrupt the model unless the step is skipped (as fp16's "
      "gradient scaler does). Later ones are not reported"));
}

}  // namespace hortator::step
