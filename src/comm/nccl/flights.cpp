#include "comm/nccl/flights.hpp"

#include <exception>
#include <utility>

#include "core/activity/device_activity.hpp"

namespace hortator::comm {

NcclFlights::~NcclFlights() {
  if (told_) activity::tell_device_idle();
}

void NcclFlights::add(const activity::Operation& operation, machine::Event begin,
                      std::shared_ptr<const machine::Event> end) {
  const std::scoped_lock lock(mutex_);
  flights_.push_back({operation, std::move(begin), std::move(end)});
}

// A device that fails tells so whoever waits for it.
void NcclFlights::look() {
  const std::scoped_lock lock(mutex_);
  try {
    while (!flights_.empty() && flights_.front().end->is_reached()) flights_.pop_front();
    tell_first();
  } catch (const std::exception&) {
    flights_.clear();
    tell_first();
  }
}

// Only what has changed: the time since then is what the watchdog counts.
void NcclFlights::tell_first() {
  if (flights_.empty()) {
    if (std::exchange(told_, std::nullopt)) activity::tell_device_idle();
    return;
  }
  const auto& [operation, begin, end] = flights_.front();
  const Told now{operation.communicator, operation.sequence, begin.is_reached()};
  if (std::exchange(told_, now) != now) activity::tell_device(operation, now.is_its_turn);
}

}  // namespace hortator::comm
