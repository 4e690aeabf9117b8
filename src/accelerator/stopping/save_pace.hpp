#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace hortator::accelerator {

/// Measures when this rank has saved and how long the program was blocked by it. A save takes minutes on one file
/// system and seconds on another, so that only the run itself can know.
class SavePace {
 public:
  using Clock = std::chrono::steady_clock;

  struct Saved {
    std::chrono::system_clock::time_point at;
    Clock::duration took;
  };

  /// Call after each save, with the time that the program was blocked.
  void saved(Clock::duration took) {
    latest_ = {.at = std::chrono::system_clock::now(), .took = took};
    longest_ = std::max(longest_.value_or(took), took);
    last_ = Clock::now();
  }
  /// Call after saved() if the checkpoint was complete when the program continued.
  void note_complete() {
    longest_until_complete_ = std::max(longest_until_complete_.value_or(latest_->took), latest_->took);
  }
  /// The longest blocking so far; nothing before the first save.
  std::optional<Clock::duration> cost() const { return longest_; }
  std::optional<Clock::duration> longest_until_complete() const { return longest_until_complete_; }
  const std::optional<Saved>& latest() const { return latest_; }

  /// From now on a save is due when `every` has passed since the last one, or since the start.
  void ask_for_every(Clock::duration every) { every_ = every; }
  bool is_due() const { return every_ && Clock::now() - last_ >= *every_; }

 private:
  Clock::time_point last_ = Clock::now();
  std::optional<Clock::duration> longest_;
  std::optional<Clock::duration> longest_until_complete_;
  std::optional<Saved> latest_;
  std::optional<Clock::duration> every_;
};

/// The interval between two saves of that cost which minimises the time lost to saves and failures together (Young
/// 1974): sqrt(2 cost x mean time between failures). UsageError unless `between_failures` is positive.
std::chrono::seconds best_interval(SavePace::Clock::duration cost, std::chrono::seconds between_failures);

/// Times from the call of a save until the checkpoint is complete; a background save takes longer than the call.
struct SaveTimes {
  std::optional<SavePace::Clock::duration> longest = {};    ///< so far; nothing before the first is complete
  std::optional<SavePace::Clock::duration> under_way = {};  ///< since the call of one that is not complete yet
};

/// The expected time until a save that is called now is complete. It starts when the one under way has ended, which is
/// assumed to take as long as the longest so far. Nothing before the first save.
std::optional<SavePace::Clock::duration> time_to_save(const SaveTimes& times);

/// Whether a save can complete within `left`, the time until SIGKILL. Before the first save has completed, five seconds
/// are enough for a try (PBS leaves eight to the ranks of mpirun), since a save that is cut off loses nothing; but not
/// if one is under way, which needs this time.
bool save_fits(const SaveTimes& times, std::chrono::milliseconds left);

}  // namespace hortator::accelerator
