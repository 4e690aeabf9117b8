#pragma once

#include <filesystem>
#include <hortator/tracker.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/trackers/late_values.hpp"

namespace hortator::observe {

/// All trackers of a run, on the main process; on the others it only counts steps.
class Trackers {
 public:
  enum class Place { main, elsewhere };

  Trackers(const std::vector<LogWith>& chosen, Place place, std::filesystem::path folder);
  ~Trackers();
  Trackers(const Trackers&) = delete;
  Trackers& operator=(const Trackers&) = delete;

  /// Once, before anything is logged; log() does it by itself with the name "metrics".
  void start(const std::string& name, const TrackerConfig& config);
  /// Without a step, that after the last one.
  void log(const NamedValues& values, std::optional<std::int64_t> step);
  /// The one of that name; on other processes one that keeps nothing. UsageError for a name that was not chosen.
  Tracker& get(const std::string& name);
  void flush();   ///< everything logged so far is there to stay
  void finish();  ///< nothing comes after this

  /// -1: nothing was logged yet.
  std::int64_t last_step() const { return last_step_; }
  /// A checkpoint was loaded: what was logged after `last_step` is no part of the run any more.
  void go_on_after(std::int64_t last_step);
  /// The last step that was logged before this process went on; nothing: it began anew.
  std::optional<std::int64_t> resumed_after() const { return resumed_after_; }
  /// What was logged last, of each name.
  const std::vector<std::pair<std::string, double>>& latest() const { return latest_; }
  /// Where "jsonl" writes; empty unless it is among them.
  std::filesystem::path rows() const;

 private:
  void start_if_need_be();
  void write_late();
  template <typename Work>
  void each(const Work& work);

  Place place_;
  std::filesystem::path folder_;
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<Tracker>> trackers_;
  std::string name_;  ///< empty: not started
  std::optional<LateRecord> late_;
  std::vector<std::pair<std::string, double>> latest_;
  std::int64_t last_step_ = -1;
  std::optional<std::int64_t> resumed_after_;
  int exceptions_;
};

}  // namespace hortator::observe
