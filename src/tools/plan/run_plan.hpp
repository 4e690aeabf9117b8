#pragma once

#include <string>
#include <vector>

#include "planning/choice.hpp"
#include "tools/plan/probes.hpp"

namespace hortator::tools {

/// A candidate that was rehearsed, or only costed.
struct PlannedRun {
  planning::Costed cost;
  bool is_rehearsed = false;
  std::string problem = "";  ///< why it cannot run
};

/// A candidate that has run here, on as many ranks as could.
struct CheckedRun {
  planning::Candidate candidate;
  PlannedRun predicted = {};  ///< on these ranks
  double bytes = 0;           ///< measured, of the rank that needs most
  double seconds = 0;         ///< measured, of an update
  std::string problem = "";   ///< why it failed
  std::string not_run = "";   ///< why it did not run
};

/// What a plan was made for, and what came out of it.
struct RunPlan {
  planning::Machine machine;
  bool assumes_machine = false;  ///< no machine file was given
  int ranks = 1;
  std::vector<std::string> command;
  Probed probed;
  std::vector<PlannedRun> best;      ///< the fastest first
  std::vector<PlannedRun> rejected;  ///< rehearsed, and they do not fit or fail
  std::vector<CheckedRun> checked;   ///< the first of the best, where that was asked for
};

/// Rehearses a candidate on the plan's ranks, so that its memory is exact.
PlannedRun rehearsed_run(const RunPlan& plan, const planning::Costed& one);

/// The command that starts a candidate on the plan's ranks, without the program.
std::vector<std::string> launch_command(const RunPlan& plan, const planning::Candidate& candidate);

}  // namespace hortator::tools
