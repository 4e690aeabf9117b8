#pragma once

#include <string>
#include <vector>

#include "planning/choice.hpp"
#include "tools/plan/probes.hpp"

/// A plan, for people and programs. Pure.
namespace hortator::tools {

/// A candidate that was rehearsed, or only costed.
struct PlannedRun {
  planning::Costed cost;
  bool is_rehearsed = false;
  std::string problem = "";  ///< why it cannot run
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
};

std::string plan_text(const RunPlan& plan);
std::string plan_json(const RunPlan& plan);

/// Why a setting ("tensor", "zero=3", "pipeline=4") is not in the plan's best run, or that it is. Throws UsageError for
/// any other name. `all` are all candidates, as planning::ranked() orders them.
std::string why_text(const RunPlan& plan, const std::vector<planning::Costed>& all, const std::string& setting);

}  // namespace hortator::tools
