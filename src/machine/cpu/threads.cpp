#include "machine/cpu/threads.hpp"

#include <algorithm>

#include "core/text/text.hpp"

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
  return plan;
}

std::optional<int> asked_threads(const core::Variables& variables) {
  const auto text = variables("OMP_NUM_THREADS");
  long long value = 0;
  if (!text || !text::parse_integer(text::split(*text, ',').front(), value)) return std::nullopt;
  constexpr long long max = 1 << 16;
  return value >= 1 && value <= max ? std::optional<int>(static_cast<int>(value)) : std::nullopt;
}

}  // namespace hortator::machine
