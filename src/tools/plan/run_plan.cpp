#include "tools/plan/run_plan.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace hortator::tools {

PlannedRun rehearsed_run(const RunPlan& plan, const planning::Costed& one) {
  PlannedRun run{.cost = one, .is_rehearsed = true};
  const RehearsalPlan world{.ranks = plan.ranks,
                            .ranks_of_a_node = plan.machine.ranks_per_node,
                            .command = plan.command,
                            .variables = planning::variables(one.candidate)};
  // The first rank has most activations, the last the head of the model and the loss.
  std::vector<int> ranks = {0};
  if (one.candidate.pipeline > 1) ranks.push_back(plan.ranks - 1);
  run.cost.memory = {};
  double slowest = 0;
  for (const int rank : ranks) {
    const auto found = rehearse_rank(world, rank);
    if (!found.report.is_object()) {
      run.problem = text::concat("rank ", rank, " fails: ", last_error(found.output));
      return run;
    }
    const auto memory = memory_in(found.report);
    if (memory.total() > run.cost.memory.total()) run.cost.memory = memory;
    const auto time =
        planning::time_cost(work_in(found.report), one.candidate, plan.machine, plan.probed.facts.is_16bit);
    if (time.total() > slowest) run.cost.time = time;
    slowest = std::max(slowest, time.total());
  }
  run.cost.throughput = planning::throughput(plan.probed.facts, one.candidate, run.cost.time);
  return run;
}

std::vector<std::string> launch_command(const RunPlan& plan, const planning::Candidate& candidate) {
  std::vector<std::string> command = {"launch"};
  const bool has_whole_nodes = plan.ranks % plan.machine.ranks_per_node == 0;
  if (plan.ranks > plan.machine.ranks_per_node && has_whole_nodes) {
    command.insert(command.end(), {"--nodes", std::to_string(plan.ranks / plan.machine.ranks_per_node),
                                   "--ranks-per-node", std::to_string(plan.machine.ranks_per_node)});
  } else {
    command.insert(command.end(), {"-n", std::to_string(plan.ranks)});
  }
  for (const auto& flag : text::split(planning::launch_flags(candidate), ' ')) {
    if (!flag.empty()) command.push_back(flag);
  }
  return command;
}

}  // namespace hortator::tools
