#include "step/precision/late_verdict.hpp"

#include <ATen/ops/add.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <exception>
#include <thread>

#include "machine/device/copy_bytes.hpp"

namespace hortator::step {

using namespace std::chrono_literals;

LateVerdict::LateVerdict(c10::Device device) : on_host_(at::zeros({1}, at::kFloat)), device_view_(on_host_) {
  if (device.is_cpu()) return;
  on_host_ = on_host_.pin_memory();
  device_view_ = machine::byte_view(on_host_.mutable_data_ptr(), on_host_.nbytes(), device).view(at::kFloat);
}

// The device may still write to this memory. The destructor does not wait for it, and leaks the memory instead.
LateVerdict::~LateVerdict() {
  try {
    if (has_arrived()) return;
  } catch (const std::exception&) {  // a failed device should not write any more, but leaking is safe
  }
  static_cast<void>(on_host_.unsafeReleaseTensorImpl());
}

void LateVerdict::write(const at::Tensor& not_finite) {
  const at::NoGradGuard no_grad;
  not_finite_ = not_finite;
  at::add_out(device_view_, not_finite.reshape({1}), at::zeros({}, at::kFloat));  // one kernel, no copy
}

void LateVerdict::expect() {
  const auto device = device_view_.device();
  if (device.is_cpu()) return;
  written_.emplace(device.type());
  written_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

bool LateVerdict::has_arrived() const { return !written_ || written_->query(); }

// Polls, because query() throws if the device fails. Usually the number arrived long ago.
bool LateVerdict::is_overflow() const {
  while (!has_arrived()) std::this_thread::sleep_for(20us);
  return on_host_.const_data_ptr<float>()[0] > 0;
}

}  // namespace hortator::step
