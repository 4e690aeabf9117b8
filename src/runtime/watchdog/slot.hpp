#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/activity/activity.hpp"

namespace hortator::runtime {

/// The state of a process. From `stopped` on it does not run.
enum class RankLife {
  running,
  blocked,  ///< in the kernel, by a device or file system that does not answer
  traced,   ///< a debugger holds it
  stopped,
  vanished,
  left,  ///< it has ended its participation in an orderly way
};

/// The status of a rank. The rank publishes all of it except `life`. Travels as JSON.
struct RankRecord {
  struct Wait {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t communicator = 0;
    std::uint64_t sequence = 0;
    int size = 0;        ///< the communicator's ranks
    double seconds = 0;  ///< as counted by the rank itself

    friend bool operator==(const Wait&, const Wait&) = default;
  };
  /// The oldest operation that the rank's device has been given and has not finished.
  struct OnDevice {
    std::string name;
    std::uint64_t communicator = 0;
    std::uint64_t sequence = 0;
    bool is_its_turn = false;  ///< false: the device is still busy with earlier work

    friend bool operator==(const OnDevice&, const OnDevice&) = default;
  };
  struct CommunicatorProgress {
    std::uint64_t communicator = 0;
    std::uint64_t entered = 0;

    friend bool operator==(const CommunicatorProgress&, const CommunicatorProgress&) = default;
  };

  int rank = 0;
  int local_rank = 0;
  std::string host = {};
  long pid = 0;
  std::uint64_t start =
      0;  ///< when the process started, in the kernel's ticks: tells it from a later one of this number
  RankLife life = RankLife::running;
  activity::Phase phase = activity::Phase::running;
  std::optional<Wait> wait =
      {};  ///< the collective that it is in, itself or by its device, the longest if there are several
  bool has_one_thread =
      false;  ///< only one thread has ever entered collectives: while it waits, the rank enters no other
  double outside_seconds = 0;                        ///< time since it was last in a collective
  std::optional<OnDevice> device = {};               ///< empty: it has finished all, or there is none
  std::vector<CommunicatorProgress> standings = {};  ///< in the communicators of the world
  std::string note = {};                             ///< what it would throw once the others come (activity::Note)
  std::vector<std::string> stack = {};               ///< of its main thread, innermost first, if it was asked for

  friend bool operator==(const RankRecord&, const RankRecord&) = default;
};

std::string to_json(const RankRecord& slot);
/// In at most `bytes` bytes. Drops the stack if necessary, then the older communicators in which the rank does not
/// wait.
std::string to_json_within(RankRecord slot, std::size_t bytes);
std::string to_json(const std::vector<RankRecord>& slots);
/// Empty for text that to_json has not written; it may have been cut.
std::optional<RankRecord> slot_from_json(std::string_view text);
std::vector<RankRecord> slots_from_json(std::string_view text);

}  // namespace hortator::runtime
