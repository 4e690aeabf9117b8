#include "tools/plan/check.hpp"

#include <algorithm>
#include <filesystem>

#include "core/passing_folder.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "observe/status/measure.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/launch/machine.hpp"
#include "tools/rehearse/logged_run.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t runs_checked = 3;
constexpr int updates_measured = 20;  // the first few are left out

/// The plan for a run here, where one machine is one node whatever the plan's nodes have.
RunPlan on_ranks(const RunPlan& plan, int ranks) {
  auto other = plan;
  other.ranks = ranks;
  other.machine.ranks_per_node = nodes_at_hand() > 1 ? std::min(plan.machine.ranks_per_node, ranks) : ranks;
  return other;
}

double peak_in(const fs::path& report) {
  const auto json = core::parse_record<nlohmann::ordered_json>(core::read_whole(report).value_or(""));
  return json.is_object() ? memory_in(json).total() : 0;
}

/// Runs a candidate on all of the plan's ranks.
void measure(const RunPlan& plan, CheckedRun& run) {
  // All nodes see the working folder.
  const core::PassingFolder folder(nodes_at_hand() > 1 ? fs::current_path() : fs::temp_directory_path(),
                                   "hortator-check");
  const auto measured = folder.path() / "measure.json";
  const auto memory = folder.path() / "memory";
  const auto log = folder.path() / "output.log";
  std::vector<std::string> command = {own_program()};
  const auto launch = launch_command(plan, run.candidate);
  command.insert(command.end(), launch.begin(), launch.end());
  command.insert(
      command.end(),
      {"env", "HORTATOR_MEASURE=" + measured.string(), text::concat("HORTATOR_MEASURE_UPDATES=", updates_measured),
       "HORTATOR_MEMORY_REPORT=" + memory.string(), "HORTATOR_RUN_DIR=" + (folder.path() / "run").string()});
  command.insert(command.end(), plan.command.begin(), plan.command.end());
  const int code = run_logged(command, log);
  const auto found = observe::parse_measure(core::read_whole(measured).value_or(""));
  for (int rank = 0; rank < plan.ranks; ++rank)
    run.bytes = std::max(run.bytes, peak_in(memory.string() + text::concat('.', rank)));
  if (code != 0 || !found) {
    const auto output = end_of_output(core::read_whole(log).value_or(""));
    run.problem = text::concat("exit code ", code, ": ", last_error(output));
    return;
  }
  run.seconds = found->seconds_per_update;
  if (run.bytes == 0 || run.seconds == 0) run.problem = "the program made fewer than two updates";
}

CheckedRun checked_run(const RunPlan& plan, const PlannedRun& planned, int ranks) {
  const auto candidate = planning::on_at_most(planned.cost.candidate, ranks);
  if (!candidate) {
    return {.candidate = planned.cost.candidate,
            .predicted = planned,
            .not_run = text::concat("it needs more than the ", text::count(ranks, "rank"), " that can run here")};
  }
  CheckedRun run{.candidate = *candidate, .predicted = planned};
  const auto here = on_ranks(plan, candidate->ranks());
  const bool is_as_planned = here.ranks == plan.ranks && here.machine == plan.machine && planned.is_rehearsed;
  if (!is_as_planned) run.predicted = rehearsed_run(here, {.candidate = *candidate, .memory = {}, .time = {}});
  run.problem = run.predicted.problem;
  if (run.problem.empty()) measure(here, run);
  return run;
}

}  // namespace

int ranks_here(const RunPlan& plan) {
  const int nodes = nodes_at_hand();
  if (nodes > 1) return nodes * plan.machine.ranks_per_node;
  return std::max(1, core_count());
}

std::vector<CheckedRun> checked_runs(const RunPlan& plan) {
  const int ranks = std::min(plan.ranks, ranks_here(plan));
  std::vector<CheckedRun> runs;
  for (const auto& planned : plan.best) {
    if (runs.size() == runs_checked) break;
    runs.push_back(checked_run(plan, planned, ranks));
  }
  return runs;
}

}  // namespace hortator::tools
