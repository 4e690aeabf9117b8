#pragma once

#include <string>
#include <vector>

#include "observe/status/restart_record.hpp"

/// Decides whether a failed run is started again, and when.
namespace hortator::tools {

/// The exit code of wrong usage.
constexpr int usage_exit_code = 2;

struct RestartLimits {
  int in_total = 0;  ///< of one launch
  int per_hour = 0;  ///< 0: any number
};

struct RestartPlan {
  bool restarts = false;
  double delay = 0;          ///< seconds to wait before it
  std::string refused = {};  ///< why it is not started again; empty if it is
};

/// `failed` has just failed, with the decision of the rules; `earlier` are the failed attempts of the same launch, in
/// order. Waits longer after each attempt that has made no progress: from no time for a rank that was killed, from
/// seconds for what must recover first, as a network or a file system. Pure.
RestartPlan plan_restart(const observe::RestartRecord& failed, const std::vector<observe::RestartRecord>& earlier,
                         const RestartLimits& limits);

}  // namespace hortator::tools
