#include "step/precision/late_verdict.hpp"

#include <ATen/ops/add.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <exception>
#include <thread>

#include "step/precision/device_view.hpp"

namespace hortator::step {

using namespace std::chrono_literals;

LateVerdict::LateVerdict(c10::Device device) : here_(at::zeros({1}, at::kFloat)), device_view_(here_) {
  if (device.is_cpu()) return;
  here_ = here_.pin_memory();
  device_view_ = device_view(here_, device);
}

// What the device is still to write to must not become somebody else's: nobody waits for it here, so it stays.
LateVerdict::~LateVerdict() {
  try {
    if (has_come()) return;
  } catch (const std::exception&) {  // a device that is lost writes nothing, but who knows
  }
  static_cast<void>(here_.unsafeReleaseTensorImpl());
}

void LateVerdict::leave(const at::Tensor& not_finite) {
  const at::NoGradGuard no_grad;
  not_finite_ = not_finite;
  at::add_out(device_view_, not_finite.reshape({1}), 0);
}

void LateVerdict::expect() {
  const auto device = device_view_.device();
  if (device.is_cpu()) return;
  left_.emplace(device.type());
  left_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

bool LateVerdict::has_come() const { return !left_ || left_->query(); }

// Asking over and over, since a device that fails says so to those who ask. As a rule it has come long ago.
bool LateVerdict::is_overflow() const {
  while (!has_come()) std::this_thread::sleep_for(20us);
  return here_.const_data_ptr<float>()[0] > 0;
}

}  // namespace hortator::step
