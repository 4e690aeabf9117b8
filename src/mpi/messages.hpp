#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/activity/activity.hpp"
#include "mpi/communicator.hpp"
#include "mpi/request.hpp"

namespace hortator::mpi {

/// Messages between neighbours in a ring of ranks, on a communicator of their own: the last rank's next one is the
/// first. Messages in one direction with one tag arrive in the order in which they were sent. The watchdog sees a rank
/// that waits for one, and which rank has not sent it.
class Messages {
 public:
  /// Ranks that are neighbours, seen from this one.
  enum class Peer { previous, next };

  /// @collective over `ranks`
  explicit Messages(const Communicator& ranks);
  /// Messages that MPI still sends keep their bytes for good.
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  int rank_of(Peer peer) const;
  const Communicator& ranks() const { return ranks_; }

  /// Starts to send. `bytes` must stay unchanged as long as `keeps` lives, which is released when they have left.
  void send(Peer to, int tag, std::span<const std::byte> bytes, std::shared_ptr<const void> keeps);
  /// Waits for a message of exactly this size, and sends what is under way meanwhile.
  void receive(Peer from, int tag, std::span<std::byte> into);
  /// Whether the next message of this tag has begun to arrive: receive() would not wait for its sender to come to it.
  bool has_arrived(Peer from, int tag);
  /// Sends what is under way, as far as it goes without waiting.
  void advance();
  /// Waits until all messages have left.
  void finish();

 private:
  struct Sent {
    Request request = {};
    std::shared_ptr<const void> keeps;
  };

  Communicator ranks_;
  std::deque<Sent> sent_;
  activity::Membership from_previous_, to_previous_, from_next_, to_next_;  ///< each of two ranks
};

}  // namespace hortator::mpi
