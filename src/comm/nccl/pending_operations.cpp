#include "comm/nccl/pending_operations.hpp"

#include <exception>
#include <utility>

#include "core/activity/device_activity.hpp"

namespace hortator::comm {

NcclPendingOperations::~NcclPendingOperations() {
  if (told_) activity::publish_device_idle();
}

void NcclPendingOperations::add(const activity::Operation& operation, machine::Event begin,
                                std::shared_ptr<const machine::Event> end) {
  const std::scoped_lock lock(mutex_);
  pending_.push_back({operation, std::move(begin), std::move(end)});
}

// A device that fails tells so whoever waits for it.
void NcclPendingOperations::look() {
  const std::scoped_lock lock(mutex_);
  try {
    while (!pending_.empty() && pending_.front().end->is_reached()) pending_.pop_front();
    tell_first();
  } catch (const std::exception&) {
    pending_.clear();
    tell_first();
  }
}

// Only what has changed: the time since then is what the watchdog counts.
void NcclPendingOperations::tell_first() {
  if (pending_.empty()) {
    if (std::exchange(told_, std::nullopt)) activity::publish_device_idle();
    return;
  }
  const auto& [operation, begin, end] = pending_.front();
  const Told now{operation.communicator, operation.sequence, begin.is_reached()};
  if (std::exchange(told_, now) != now) activity::publish_device(operation, now.is_its_turn);
}

}  // namespace hortator::comm
