#pragma once

#include <hortator/training/accelerator_options.hpp>
#include <map>
#include <string>
#include <vector>

#include "core/environment/environment.hpp"
#include "runtime/world.hpp"

/// parallel.automatic: the settings that `hortator plan` finds best.
namespace hortator::accelerator {

/// The best run of a plan.
struct PlannedSettings {
  std::map<std::string, std::string> variables = {};  ///< of a launch with its settings
  std::string summary = "";                           ///< in one line
};

/// The best run in what `hortator plan --json` prints. Throws Error where none fits, which names the run that needs
/// least. Pure.
PlannedSettings settings_in_plan(const std::string& json);

/// Whether a recorded plan is for this command on this many ranks. Pure.
bool is_plan_of(const std::string& json, const std::vector<std::string>& command, int ranks, int ranks_per_node);

/// Throws UsageError where a variable sets what a plan chooses. Pure.
void refuse_beside_plan(const core::Variables& variables);

/// The variables, and where they are not set those of the plan. Pure.
core::Variables with_settings(core::Variables variables, PlannedSettings planned);

/// The JSON of a plan for this program on these ranks, which the main process reads from the run folder or makes by
/// rehearsals in other processes; the same on all ranks. Throws on all ranks where that fails or nothing fits.
/// @collective
std::string plan_for(const AcceleratorOptions& options, const runtime::World& world);

/// The file of plans in a run folder.
inline constexpr auto plan_file = "plan.json";

}  // namespace hortator::accelerator
