#pragma once

#include <filesystem>
#include <hortator/tracker.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/trackers/late_values.hpp"

namespace hortator::observe {

/// The main process calls all trackers. Other processes count steps, and call those trackers that are not for the main
/// process only.
inline constexpr int main_process = 0;

/// All trackers of a run.
class Trackers {
 public:
  Trackers(const std::vector<LogWith>& chosen, int process, std::filesystem::path folder);
  ~Trackers();
  Trackers(const Trackers&) = delete;
  Trackers& operator=(const Trackers&) = delete;

  /// Call it at most once, before anything is logged; otherwise log() calls it with the name "metrics". Throws
  /// UsageError for a second call and for a name that cannot be a file's.
  void start(const std::string& name, const TrackerConfig& config);
  /// Without a step, records under the step after the last one.
  void log(const NamedValues& values, std::optional<std::int64_t> step);
  /// The tracker of that name; where this process does not call it, one that records nothing. Throws UsageError for a
  /// name that was not chosen.
  Tracker& get(const std::string& name);
  void flush();   ///< makes everything logged so far durable
  void finish();  ///< call it last

  /// -1: nothing has been logged.
  std::int64_t last_step() const { return last_step_; }
  /// Call it when a checkpoint was loaded: records of steps after `last_step` are removed.
  void resume_after(std::int64_t last_step);
  /// The last logged step of the run that this process resumed; nothing: it started from scratch.
  std::optional<std::int64_t> resumed_after() const { return resumed_after_; }
  /// The last logged value of each name.
  const std::vector<std::pair<std::string, double>>& latest() const { return latest_; }
  /// The file that the tracker "jsonl" writes; empty unless that tracker was chosen and started.
  std::filesystem::path rows() const;

 private:
  void start_if_needed();
  void write_late();
  template <typename Work>
  void each(const Work& work);

  int process_;
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
