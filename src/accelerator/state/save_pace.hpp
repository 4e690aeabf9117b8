#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace hortator::accelerator {

/// When this rank has saved, and how long the program stood still for it. What takes minutes on one file system takes
/// seconds on another: only the run itself can know.
class SavePace {
 public:
  using Clock = std::chrono::steady_clock;

  struct Saved {
    std::chrono::system_clock::time_point at;
    Clock::duration took;
  };

  /// The program has stood still for so long.
  void saved(Clock::duration took) {
    latest_ = {.at = std::chrono::system_clock::now(), .took = took};
    longest_ = std::max(longest_.value_or(took), took);
    last_ = Clock::now();
  }
  /// After that: it was there when the program went on.
  void was_there() { longest_until_there_ = std::max(longest_until_there_.value_or(latest_->took), latest_->took); }
  /// The longest standing still so far; nothing before the first.
  std::optional<Clock::duration> cost() const { return longest_; }
  std::optional<Clock::duration> longest_until_there() const { return longest_until_there_; }
  const std::optional<Saved>& latest() const { return latest_; }

  /// From now on a save is due so long after the last one, or after the start.
  void ask_for_every(Clock::duration every) { every_ = every; }
  bool is_due() const { return every_ && Clock::now() - last_ >= *every_; }

 private:
  Clock::time_point last_ = Clock::now();
  std::optional<Clock::duration> longest_;
  std::optional<Clock::duration> longest_until_there_;
  std::optional<Saved> latest_;
  std::optional<Clock::duration> every_;
};

/// How long to compute between two saves that cost so much, so that saving and what failures lose cost least together
/// (Young 1974): sqrt(2 cost x mean time between failures).
std::chrono::seconds best_interval(SavePace::Clock::duration cost, std::chrono::seconds between_failures);

/// From the call of a save until the checkpoint is there, which beside the program takes longer than the call.
struct SaveTimes {
  std::optional<SavePace::Clock::duration> longest = {};    ///< so far; nothing before one was there
  std::optional<SavePace::Clock::duration> under_way = {};  ///< since the call of one that is not there yet
};

/// What it takes from now on: a save begins when the one under way has ended, of which no more is known than that it
/// takes as long as the longest. Nothing when nothing was seen yet.
std::optional<SavePace::Clock::duration> time_to_save(const SaveTimes& times);

/// Whether a save can be made before SIGKILL comes. Before the first was there it is tried where there are ten seconds:
/// a save that is cut off loses nothing. But then one that is under way had better have this time.
bool save_fits(const SaveTimes& times, std::chrono::milliseconds left);

}  // namespace hortator::accelerator
