#pragma once

#include <chrono>
#include <optional>

namespace hortator::accelerator {

/// When this rank has saved, and how long that took. What takes minutes on one file system takes seconds on another:
/// only the run itself can know.
class SavePace {
 public:
  using Clock = std::chrono::steady_clock;

  struct Saved {
    std::chrono::system_clock::time_point at;
    Clock::duration took;
  };

  void saved(Clock::duration took) {
    latest_ = {.at = std::chrono::system_clock::now(), .took = took};
    longest_ = std::max(longest_.value_or(took), took);
    last_ = Clock::now();
  }
  /// The longest so far; nothing before the first.
  std::optional<Clock::duration> cost() const { return longest_; }
  const std::optional<Saved>& latest() const { return latest_; }

  /// From now on a save is due so long after the last one, or after the start.
  void ask_for_every(Clock::duration every) { every_ = every; }
  bool is_due() const { return every_ && Clock::now() - last_ >= *every_; }

 private:
  Clock::time_point last_ = Clock::now();
  std::optional<Clock::duration> longest_;
  std::optional<Saved> latest_;
  std::optional<Clock::duration> every_;
};

/// How long to compute between two saves that cost so much, so that saving and what failures lose cost least together
/// (Young 1974): sqrt(2 cost x mean time between failures).
std::chrono::seconds best_interval(SavePace::Clock::duration cost, std::chrono::seconds between_failures);

/// Whether a save can be made before SIGKILL comes. Without a measured cost it is tried where there are ten seconds: a
/// save that is cut off loses nothing.
bool save_fits(std::optional<SavePace::Clock::duration> cost, std::chrono::milliseconds left);

}  // namespace hortator::accelerator
