#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "machine/device/background_monitor.hpp"
#include "machine/energy/energy_meter.hpp"
#include "observe/profile/flop_counter.hpp"
#include "observe/status/job_commenter.hpp"
#include "observe/status/metrics_file.hpp"
#include "observe/status/status_file.hpp"
#include "observe/status/status_record.hpp"
#include "runtime/identity/outcome.hpp"
#include "runtime/world.hpp"

namespace hortator::accelerator {

/// The Accelerator's facts for a status row. Seconds are those of the whole run so far.
struct RunFacts {
  std::string phase = "running";
  bool is_over = false;
  double communicating = 0;
  double waiting_for_data = 0;
  std::vector<observe::LoopStatus> loops = {};
  std::optional<observe::SaveStatus> save = {};
  std::optional<double> deadline = {};
  std::string rows = "";
  std::string mesh = "";  ///< see observe::RankStatus
  std::vector<std::pair<std::string, double>> values = {};
  std::optional<std::int64_t> resumed_after = {};
  std::int64_t updates_before = 0;  ///< of the runs that this one has resumed
  std::int64_t samples = 0;         ///< that loaders have handed out to all ranks
};

/// Writes this rank's status rows to the run's folder, for `hortator watch`: at steps, about once a second (in large
/// jobs less often: all ranks together write about 64 rows a second). A row costs about 50 us. What a device's
/// driver says in it is of the row before. A run of less than a second writes one at its end if it has saved or logged
/// something.
class RunStatus {
 public:
  using Clock = std::chrono::steady_clock;

  RunStatus(const runtime::World& world, const std::filesystem::path& run_folder);

  void count_backward(bool averages);
  std::int64_t updates() const { return updates_; }
  bool is_due() const { return Clock::now() >= next_; }
  bool was_written() const { return written_; }
  /// Whether the run's folder has more in it than the lock.
  bool has_files() const;
  void write(const RunFacts& facts);
  /// Whether `hortator scale` has asked for a measure at the end (HORTATOR_MEASURE).
  bool is_measured() const { return !measure_file_.empty(); }
  void write_measure(const RunFacts& facts, std::int64_t gradient_bytes);
  /// What this rank has measured so far. `samples`: that loaders have handed out to all ranks.
  runtime::Energy energy(std::int64_t samples);
  /// The energy of the main rank's node at its last row, and that for each sample of the node, under names for
  /// trackers; empty on other ranks, and where nothing is measured.
  std::vector<std::pair<std::string, double>> energy_values() const;

 private:
  /// Counters at one time; rates are computed between two of them.
  struct Moment {
    Clock::time_point at = {};
    std::int64_t updates = 0;
    double cpu = 0;
    double communicating = 0;
    double waiting_for_data = 0;
  };

  observe::RankStatus status_at(const Moment& here, const RunFacts& facts) const;
  void keep_last_rates(observe::RankStatus& status) const;
  void begin_session(const RunFacts& facts);
  void look_at_device(observe::RankStatus& status);
  void note_device_energy(const machine::DeviceUse& use);
  void count_flops();

  std::filesystem::path folder_;
  int rank_;
  int world_;
  std::string host_;
  std::string process_;
  int cpus_;
  c10::Device device_;
  std::optional<machine::BackgroundMonitor> monitor_;
  std::string job_;
  double every_;
  observe::StatusFile file_;
  observe::MetricsFile metrics_;
  observe::JobCommenter comment_;
  double started_;
  Clock::time_point next_;
  std::int64_t updates_ = 0;
  std::filesystem::path measure_file_;  ///< empty if no measure is asked for
  Clock::time_point begun_ = Clock::now();
  std::optional<Clock::time_point> first_update_;
  std::optional<Clock::time_point> warm_update_;  ///< the first one that counts
  Clock::time_point last_update_;
  std::optional<observe::FlopCounter> flop_counter_;
  double flops_per_update_ = 0;
  int nodes_;
  int node_ranks_;
  bool is_leader_;  ///< the first rank of its node, which measures the node
  machine::EnergyMeter node_energy_;
  std::optional<double> device_joules_before_;
  double device_joules_ = 0;
  runtime::Energy energy_;  ///< at the last row
  bool written_ = false;
  bool is_lost_ = false;  ///< the folder cannot be written

  Moment before_;  ///< of the last row
  observe::RankStatus last_;
};

/// The seconds between two status rows of a rank.
double status_interval(int rank, int world);

}  // namespace hortator::accelerator
