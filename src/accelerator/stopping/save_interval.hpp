#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace hortator::accelerator {

/// When the next of a series of checkpoints is due: a number of updates or a time after the last one, whichever comes
/// first. Ranks have clocks of their own: what rank 0 finds must be agreed on.
class SaveInterval {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  /// 0 updates, or no time: that one never counts. The first interval begins now, at update 0.
  SaveInterval(std::int64_t updates, std::chrono::milliseconds time)
      : every_updates_(updates), every_time_(time), now_(Clock::now), last_time_(now_()) {}
  /// That of options with the members every_steps and every.
  template <typename Options>
  static SaveInterval of(const Options& options) {
    return {options.every_steps, options.every};
  }

  /// Whether checkpoints are ever due.
  bool is_set() const { return every_updates_ > 0 || every_time_.count() > 0; }
  /// Without an update since the last checkpoint, none is due.
  bool is_due(std::int64_t updates) const {
    const bool is_far = every_updates_ > 0 && updates - last_updates_ >= every_updates_;
    const bool is_late = every_time_.count() > 0 && updates > last_updates_ && now_() - last_time_ >= every_time_;
    return is_far || is_late;
  }
  /// A checkpoint was taken or loaded after that many updates: the next interval begins now.
  void restart(std::int64_t updates) {
    last_updates_ = updates;
    last_time_ = now_();
  }

  /// Reads another clock from now on, and begins the interval there.
  void set_clock(Now now) {
    now_ = std::move(now);
    last_time_ = now_();
  }

 private:
  std::int64_t every_updates_;
  std::chrono::milliseconds every_time_;
  Now now_;
  std::int64_t last_updates_ = 0;
  Clock::time_point last_time_;
};

}  // namespace hortator::accelerator
