#include "machine/cpu/threads.hpp"

#include <algorithm>

namespace hortator::machine {
namespace {

int ranks_on(int cpu, std::span<const CpuSet> sets) {
  return static_cast<int>(
      std::ranges::count_if(sets, [&](const CpuSet& set) { return std::ranges::binary_search(set, cpu); }));
}

}  // namespace

ThreadPlan plan_threads(std::span<const CpuSet> sets_of_node, int local_rank, std::optional<int> asked) {
  constexpr double rounding = 1e-9;
  ThreadPlan plan;
  double share = 0;
  for (const int cpu : sets_of_node[static_cast<std::size_t>(local_rank)]) {
    const int ranks = ranks_on(cpu, sets_of_node);
    share += 1.0 / ranks;
    plan.ranks_per_cpu = std::max(plan.ranks_per_cpu, ranks);
  }
  plan.is_crowded = share + rounding < 1;
  plan.threads = asked.value_or(std::max(1, static_cast<int>(share + rounding)));
  plan.spins_on_others = plan.ranks_per_cpu > 1 && plan.threads > 1 && plan.threads > share + rounding;
  return plan;
}

}  // namespace hortator::machine
