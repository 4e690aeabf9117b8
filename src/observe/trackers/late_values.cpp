#include "observe/trackers/late_values.hpp"

#include <ATen/ops/empty_like.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace hortator::observe {
namespace {

// Starts a copy into pinned memory, which the device writes without the host.
at::Tensor copy_to_host(const at::Tensor& number) {
  auto copy = at::empty_like(number, number.options().device(at::kCPU).pinned_memory(true));
  return copy.copy_(number, /*non_blocking=*/true);
}

}  // namespace

LateRecord::LateRecord(std::int64_t step, double time, const NamedValues& values) : step_(step), time_(time) {
  std::optional<c10::Device> device;
  for (const auto& [name, value] : values) {
    const auto* tensor = value.tensor();
    if (tensor == nullptr || tensor->is_cpu()) {
      values_.emplace_back(name, value.value());
    } else {
      values_.emplace_back(name, copy_to_host(*tensor));
      device = tensor->device();
    }
  }
  if (!device) return;
  copied_.emplace(device->type());
  copied_->record(c10::impl::VirtualGuardImpl(device->type()).getStream(*device));
}

TrackerRecord LateRecord::read() const {
  if (copied_) copied_->synchronize();
  TrackerRecord record{.step = step_, .time = time_};
  for (const auto& [name, value] : values_) {
    const auto* number = std::get_if<double>(&value);
    record.values.emplace_back(name, number != nullptr ? *number : std::get<at::Tensor>(value).item<double>());
  }
  return record;
}

}  // namespace hortator::observe
