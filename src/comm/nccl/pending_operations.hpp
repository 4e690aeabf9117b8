#pragma once

#include <deque>
#include <mutex>
#include <optional>

#include "core/activity/activity.hpp"
#include "machine/device/stream.hpp"

namespace hortator::comm {

/// The operations that the device has been given and has not finished, oldest first. Reports the oldest to the
/// watchdog: whether the device has reached it, so that it waits for its peers, or is still busy with earlier work.
/// Never waits for the device.
class NcclPendingOperations {
 public:
  NcclPendingOperations() = default;
  ~NcclPendingOperations();
  NcclPendingOperations(const NcclPendingOperations&) = delete;
  NcclPendingOperations& operator=(const NcclPendingOperations&) = delete;

  /// `begin` and `end` are the stream's marks right before and after the operation.
  void add(const activity::Operation& operation, const machine::Event& begin, const machine::Event& end);
  /// Drops finished operations and reports what has changed. Called repeatedly, by one thread.
  void update();

 private:
  struct PendingOperation {
    activity::Operation operation;
    machine::Event begin;
    machine::Event end;
  };
  struct Reported {
    std::uint64_t communicator = 0;
    std::uint64_t sequence = 0;
    bool is_its_turn = false;

    bool operator==(const Reported&) const = default;
  };
  void report_first();

  std::mutex mutex_;
  std::deque<PendingOperation> pending_;
  std::optional<Reported> reported_;
};

}  // namespace hortator::comm
