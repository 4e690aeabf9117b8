#pragma once

#include <nccl.h>

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

/// The one order in which all NCCL communicators of a process work on its device.
///
/// What it guarantees: at any moment one thread at most is inside NCCL, so an abort never meets a call; operations of
/// all communicators go to one stream, so the device does them one after another in the order in which they were
/// issued, and two communicators can never wait for each other on the device. What it cannot: make threads of one rank
/// issue in the order of the other ranks. All ranks call the verbs of all their communicators in the same order, as for
/// one.
///
/// NCCL's own errors come late: a thread asks for them ten times a second, so that a rank which sits waiting for its
/// device learns of a peer's end too. Any error aborts all communicators of the process, since data of one is of no use
/// without the others', and one left behind on the device would hold up the abort. So does a peer that has left: all
/// who wait here look for its alarm, and so does the thread for those who wait for their device.
class NcclOrder {
 public:
  /// A communicator. Null once it was aborted, and then it has a failure.
  struct Member {
    std::chrono::milliseconds patience;
    ncclComm_t comm = nullptr;
    std::shared_ptr<NcclAlarm> alarm = {};  ///< or none: nobody hears who leaves
    std::optional<NcclFailure> failure = {};
  };

  /// Of the process, while anybody holds it. Throws for a second device: a rank has one.
  static std::shared_ptr<NcclOrder> of(int device);

  explicit NcclOrder(int device);
  NcclOrder(const NcclOrder&) = delete;
  NcclOrder& operator=(const NcclOrder&) = delete;

  const machine::Stream& stream() const { return stream_; }
  NcclPendingOperations& transfers() { return pending_; }

  /// From now on `member` is asked for errors and aborted with the others.
  void join(Member& member);
  /// Waits for what is under way and ends the communicator. While an exception is on its way out it is aborted instead:
  /// its peers may never come.
  void leave(Member& member) noexcept;

  /// This rank leaves in the middle, and its peers hear of it. False where they cannot: then nothing has happened.
  bool abandon(const Member& member, std::string_view reason) noexcept;

  /// Lets `calls` call NCCL for `member`, and returns when NCCL has taken them over, which may be long before the
  /// device has done them. Throws after an abort if it fails, or takes longer than the member's patience.
  void run(Member& member, std::string_view operation, const std::function<ncclResult_t()>& calls);
  /// Until the device has done what NCCL's stream was given so far. Throws as run() does.
  void wait_for_device(Member& member, std::string_view operation);
  /// Throws what has gone wrong with `member` until now.
  void check(Member& member);
  /// Lets `calls` call NCCL for no communicator.
  void run_alone(const std::function<void()>& calls);

 private:
  void watch(const std::stop_token& stop);
  bool finish(const Member& member);
  std::optional<Abandoned> who_left() const;
  void heed_alarms();
  void fail(const Problem& problem);
  void abort_all(const NcclFailure& failure);

  int device_;
  machine::Stream stream_;
  NcclPendingOperations pending_;
  std::mutex mutex_;
  std::vector<Member*> members_;
  std::jthread watcher_;  // last: it uses all the others
};

}  // namespace hortator::comm
