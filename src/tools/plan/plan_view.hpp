#pragma once

#include <string>
#include <vector>

#include "planning/choice.hpp"
#include "tools/plan/run_plan.hpp"

/// A plan, for people and programs. Pure.
namespace hortator::tools {

std::string plan_text(const RunPlan& plan);
std::string plan_json(const RunPlan& plan);

/// Why a setting ("tensor", "zero=3", "pipeline=4") is not in the plan's best run, or that it is. Throws UsageError for
/// any other name. `all` are all candidates, as planning::ranked() orders them.
std::string why_text(const RunPlan& plan, const std::vector<planning::Costed>& all, const std::string& setting);

}  // namespace hortator::tools
