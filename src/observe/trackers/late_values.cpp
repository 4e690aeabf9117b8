#include "observe/trackers/late_values.hpp"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/item.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <hortator/error.hpp>
#include <hortator/training/progress.hpp>

#include "core/text/text.hpp"

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

namespace hortator {
namespace {

// variable_data() rather than detach(): it drops the graph without a call through the dispatcher.
at::Tensor without_graph(const at::Tensor& tensor) { return tensor.requires_grad() ? tensor.variable_data() : tensor; }

void check_single(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.numel() == 1) return;
  throw UsageError({.what = tensor.defined()
                                ? text::concat("Cannot log a tensor of ", text::count(tensor.numel(), "element"))
                                : std::string("Cannot log an undefined tensor"),
                    .why = "only single numbers can be logged",
                    .hint = "log its mean() or another single number"});
}

}  // namespace

Loggable::Loggable(const at::Tensor& tensor) {
  check_single(tensor);
  value_ = without_graph(tensor);
}

double Loggable::value() const {
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  return std::get<at::Tensor>(value_).item<double>();
}

ProgressSink::~ProgressSink() = default;

}  // namespace hortator
