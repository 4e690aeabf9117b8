#pragma once

#include <optional>
#include <span>

#include "core/environment/environment.hpp"
#include "machine/cpu/cpu_set.hpp"

namespace hortator::machine {

/// How many threads a rank computes with, and how crowded its CPUs are.
struct ThreadPlan {
  int threads = 1;
  int ranks_a_cpu = 1;      ///< the most ranks that share one of this rank's CPUs, itself included
  bool is_crowded = false;  ///< there is less than one CPU for this rank

  friend bool operator==(const ThreadPlan&, const ThreadPlan&) = default;
};

/// A rank's fair share of the CPUs that it may use: each CPU is divided among the ranks of the node that may use it,
/// too. `asked` (OMP_NUM_THREADS) is taken as it is.
ThreadPlan plan_threads(std::span<const CpuSet> sets_of_node, int local_rank, std::optional<int> asked);

/// OMP_NUM_THREADS, the outermost level of it; nothing when OpenMP would ignore it, too.
std::optional<int> asked_threads(const core::Variables& variables);

}  // namespace hortator::machine
