#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/plan/run_plan.hpp"

/// Plans beside what runs.
namespace hortator::tools {

/// The most ranks that can run here: those of the job's nodes, or one a core.
int ranks_here(const RunPlan& plan);

/// Runs the first three of the plan's best for a few updates each and measures them. Where there are fewer ranks here,
/// with fewer that get different batches.
std::vector<CheckedRun> checked_runs(const RunPlan& plan);

/// Predictions beside measurements. Pure.
std::string check_text(const RunPlan& plan);
nlohmann::ordered_json check_json(const RunPlan& plan);

}  // namespace hortator::tools
