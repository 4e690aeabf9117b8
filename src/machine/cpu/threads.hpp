#pragma once

#include <optional>
#include <span>

#include "machine/cpu/cpu_set.hpp"

namespace hortator::machine {

/// The number of threads of a rank, and how crowded its CPUs are.
struct ThreadPlan {
  int threads = 1;
  int ranks_per_cpu = 1;         ///< maximum number of ranks on one of this rank's CPUs, itself included
  bool is_crowded = false;       ///< less than one CPU for this rank
  bool spins_on_others = false;  ///< more threads than this rank's share of CPUs, which threads of other ranks need

  friend bool operator==(const ThreadPlan&, const ThreadPlan&) = default;
};

/// A rank's fair share of the CPUs that it may use: each CPU is divided among the ranks of the node that may use it.
/// `asked` (OMP_NUM_THREADS) overrides the number of threads.
ThreadPlan plan_threads(std::span<const CpuSet> sets_of_node, int local_rank, std::optional<int> asked);

}  // namespace hortator::machine
