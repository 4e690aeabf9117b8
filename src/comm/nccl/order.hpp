#pragma once

#include "comm/nccl/library.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/nccl/alarm.hpp"
#include "comm/nccl/error.hpp"
#include "comm/nccl/pending_operations.hpp"
#include "machine/device/stream.hpp"

namespace hortator::comm {

/// The order in which all NCCL communicators of a process work on its device.
///
/// It guarantees two things. At most one thread is inside NCCL at any moment, so that an abort never meets a call. The
/// operations of all communicators go to one stream, so that the device runs them in the order in which they were
/// issued and two communicators never wait for each other on the device. It cannot make the threads of one rank issue
/// operations in the order of other ranks: all ranks must call the verbs of all their communicators in the same order,
/// as for one communicator.
///
/// NCCL reports errors late. A thread asks for them ten times a second, so that a rank that waits for its device also
/// learns that a peer has ended. Any error aborts all communicators of the process: the data of one is of no use
/// without the others', and one left on the device would hold up the abort. A peer that has left has the same effect:
/// everybody who waits here checks its alarm, and the thread does so for those who wait for the device.
class NcclOrder {
 public:
  /// A communicator. Once aborted, `comm` is null and `failure` is set.
  struct Member {
    std::chrono::milliseconds patience;
    ncclComm_t comm = nullptr;
    std::shared_ptr<NcclAlarm> alarm = {};  ///< null: a rank that leaves is not noticed
    std::optional<NcclFailure> failure = {};
  };

  /// The order of this process, shared while anybody holds it. Throws for a second device: a rank has one.
  static std::shared_ptr<NcclOrder> of(c10::Device device);

  explicit NcclOrder(c10::Device device);
  NcclOrder(const NcclOrder&) = delete;
  NcclOrder& operator=(const NcclOrder&) = delete;

  const machine::Stream& stream() const { return stream_; }
  NcclPendingOperations& pending() { return pending_; }

  /// Adds `member`: its errors are checked, and it is aborted with the others.
  void join(Member& member);
  /// Waits for operations under way and ends the communicator. During stack unwinding it is aborted instead: its peers
  /// may never arrive.
  void leave(Member& member) noexcept;

  /// This rank leaves in the middle of a collective and notifies its peers. False where that is impossible: then
  /// nothing has happened.
  bool abandon(const Member& member, std::string_view reason) noexcept;

  /// Runs `calls`, which call NCCL for `member`. Returns when NCCL has accepted them, which may be long before the
  /// device has done them. On a failure, or when it takes longer than the member's patience, it aborts and throws.
  void run(Member& member, std::string_view operation, const std::function<ncclResult_t()>& calls);
  /// Waits until `is_true`. Throws as run() does.
  void wait_until(Member& member, std::string_view operation, const std::function<bool()>& is_true);
  /// Waits until the device has done all work on NCCL's stream. Throws as run() does.
  void wait_for_device(Member& member, std::string_view operation);
  /// Throws the failure of `member`, if any.
  void check(Member& member);
  /// Runs `calls`, which call NCCL for no communicator.
  void run_alone(const std::function<void()>& calls);

 private:
  std::unique_lock<std::mutex> enter();
  void watch(const std::stop_token& stop);
  bool finish(const Member& member);
  std::optional<Abandoned> peer_that_left() const;
  void abort_if_peer_left();
  void fail(const Problem& problem);
  void abort_all(const NcclFailure& failure);

  c10::Device device_;
  machine::Stream stream_;
  NcclPendingOperations pending_;
  std::mutex mutex_;
  std::vector<Member*> members_;
  std::jthread watcher_;  // last: it uses the other members
};

}  // namespace hortator::comm
