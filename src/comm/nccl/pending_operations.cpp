#include "comm/nccl/pending_operations.hpp"

#include <exception>
#include <utility>

#include "core/activity/activity.hpp"

namespace hortator::comm {

NcclPendingOperations::~NcclPendingOperations() {
  if (reported_) activity::publish_device_idle();
}

void NcclPendingOperations::add(const activity::Operation& operation, machine::Event begin,
                                std::shared_ptr<const machine::Event> end) {
  const std::scoped_lock lock(mutex_);
  pending_.push_back({operation, std::move(begin), std::move(end)});
}

// An error of the device is thrown to those who wait for it, so it is only dropped here.
void NcclPendingOperations::update() {
  const std::scoped_lock lock(mutex_);
  try {
    while (!pending_.empty() && pending_.front().end->is_reached()) pending_.pop_front();
    report_first();
  } catch (const std::exception&) {
    pending_.clear();
    report_first();
  }
}

// Reports changes only: the watchdog counts the time since the last report.
void NcclPendingOperations::report_first() {
  if (pending_.empty()) {
    if (std::exchange(reported_, std::nullopt)) activity::publish_device_idle();
    return;
  }
  const auto& [operation, begin, end] = pending_.front();
  const Reported now{operation.communicator, operation.sequence, begin.is_reached()};
  if (std::exchange(reported_, now) != now) activity::publish_device(operation, now.is_its_turn);
}

}  // namespace hortator::comm
