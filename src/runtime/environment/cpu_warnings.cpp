#include "runtime/environment/cpu_warnings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <set>
#include <string_view>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "mpi/collectives.hpp"

namespace hortator::runtime {
namespace {

std::string cpus_text(std::size_t count) { return text::count(static_cast<long long>(count), "CPU"); }

}  // namespace

std::string cpu_warning(const CpuUse& use) {
  if (use.threads > 1 && static_cast<std::size_t>(use.threads) > use.own.size()) {
    return text::concat("it computes with ", use.threads, " threads on ", cpus_text(use.own.size()),
                        ", where they take turns. Use as many threads as CPUs (OMP_NUM_THREADS, or model_threads of a "
                        "simulation), or give the ranks more CPUs (mpirun --map-by slot:PE=N, srun --cpus-per-task=N)");
  }
  std::set<int> used;
  for (const auto& set : use.of_node) used.insert(set.begin(), set.end());
  if (!use.of_launcher || 2 * used.size() >= use.of_launcher->size()) return {};
  return text::concat("mpirun binds the ranks of this node to ", used.size(), " of its ",
                      cpus_text(use.of_launcher->size()),
                      ", and the others are idle. Give each rank several (mpirun --map-by slot:PE=N), or do not bind "
                      "(--bind-to none)");
}

std::optional<machine::CpuSet> cpus_of_launcher() {
  constexpr std::array<std::string_view, 6> launchers = {"mpirun", "orted",         "prterun",
                                                         "prted",  "mpiexec.hydra", "hydra_pmi_proxy"};
  const auto parent = getppid();
  auto name = core::read_whole(text::concat("/proc/", parent, "/comm")).value_or("");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  if (std::ranges::find(launchers, name) == launchers.end()) return {};
  return machine::cpu_set_of(parent);
}

void warn_of_cpus(const mpi::Communicator& comm, const std::string& host, const CpuUse& mine) {
  constexpr int none = std::numeric_limits<int>::max();
  const auto problem = cpu_warning(mine);
  const int example = mpi::all_reduce(comm, problem.empty() ? none : comm.rank(), mpi::Op::min);
  if (example == none) return;
  const auto text = mpi::broadcast(
      comm, std::string_view(text::concat("rank ", comm.rank(), " on ", host, " is slow: ", problem)), example);
  static std::atomic_flag warned;  // programs make several States
  if (comm.rank() == 0 && !warned.test_and_set()) log::warn(text);
}

}  // namespace hortator::runtime
