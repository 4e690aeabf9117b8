#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "core/activity/activity.hpp"
#include "machine/device/event.hpp"

namespace hortator::comm {

/// The operations that the device was given and has not ended, oldest first. The watchdog hears of the first: whether
/// its turn has come, so that it waits for its peers, or whether the device is still at what it was given before.
/// Nothing here waits for the device.
class NcclPendingOperations {
 public:
  NcclPendingOperations() = default;
  ~NcclPendingOperations();
  NcclPendingOperations(const NcclPendingOperations&) = delete;
  NcclPendingOperations& operator=(const NcclPendingOperations&) = delete;

  /// `begin` and `end` are where the stream is right before and after it.
  void add(const activity::Operation& operation, machine::Event begin, std::shared_ptr<const machine::Event> end);
  /// From time to time, by one thread.
  void look();

 private:
  struct Flight {
    activity::Operation operation;
    machine::Event begin;
    std::shared_ptr<const machine::Event> end;
  };
  struct Told {
    std::uint64_t communicator = 0;
    std::uint64_t sequence = 0;
    bool is_its_turn = false;

    bool operator==(const Told&) const = default;
  };
  void tell_first();

  std::mutex mutex_;
  std::deque<Flight> pending_;
  std::optional<Told> told_;
};

}  // namespace hortator::comm
