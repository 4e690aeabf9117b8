#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/restarts/host_choice.hpp"
#include "observe/status/restart_record.hpp"
#include "tools/launch/restart_plan.hpp"
#include "tools/launch/supervise.hpp"

namespace hortator::tools {

/// How an attempt has ended, as the launcher knows it.
struct AttemptEnd {
  LauncherEnd end = {};
  double began = 0;                     ///< seconds since 1970
  std::filesystem::path folder = {};    ///< of the run; empty: its program did not begin
  std::string report = {};              ///< what mpirun or srun printed about the end
  std::int64_t memory_checkpoint = -1;  ///< the number of the newest one in this node's memory
};

/// The failed attempts of one launch.
class Attempts {
 public:
  explicit Attempts(RestartLimits limits);

  /// Asks the rules of `hortator why` about a failed attempt, judges the hosts of `supply`, writes a row to
  /// restarts.jsonl in the run's folder, and prints what was decided if restarts were asked for.
  RestartPlan judge(const AttemptEnd& attempt, launching::HostSupply supply);

  /// The hosts that this launch has reason to leave out after the last attempt.
  const std::vector<launching::JudgedHost>& judged_hosts() const { return judged_; }

 private:
  RestartLimits limits_;
  std::string launch_;  ///< names this launch
  std::vector<observe::RestartRecord> failed_;
  std::vector<std::vector<launching::HostFinding>> findings_;  ///< of each attempt
  std::vector<launching::JudgedHost> judged_;
};

}  // namespace hortator::tools
