#include "runtime/environment/environment_warnings.hpp"

#include <atomic>
#include <set>

#include "core/environment/known_variables.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::runtime {
namespace {

int count_hosts(const std::string& node_file) {
  std::set<std::string> hosts;
  for (const auto& line : text::split(core::read_whole(node_file).value_or(""), '\n')) {
    const auto host = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (!host.empty()) hosts.insert(host);
  }
  return static_cast<int>(hosts.size());
}

}  // namespace

std::vector<std::string> environment_warnings(const Topology& topology, const core::Variables& variables,
                                              const std::vector<std::string>& names) {
  std::vector<std::string> warnings;
  const auto node_file = variables("PBS_NODEFILE");
  const bool is_chosen = variables("HORTATOR_RUN_NOTE").has_value();  // by hortator's launch or job, with spare hosts
  const int hosts = node_file && !is_chosen && topology.size > 1 ? count_hosts(*node_file) : 0;
  if (hosts > topology.nodes) {
    warnings.push_back(
        text::concat("The PBS job has ", text::count(hosts, "host"), ", and this run uses ", topology.nodes,
                     ": an mpirun without PBS support (tm) sees only the first one. Start the ranks with "
                     "`hortator launch`, or give mpirun --hostfile $PBS_NODEFILE"));
  }
  for (const auto& name : names) {
    const auto meant = core::meant_variable(name);
    if (meant.empty()) continue;
    warnings.push_back(
        text::concat("The variable ", name, " has no effect: Hortator does not know it. Did you mean ", meant, "?"));
  }
  return warnings;
}

void warn_of_environment(const Topology& topology) {
  static std::atomic_flag warned;  // programs make several States
  if (topology.rank != 0 || warned.test_and_set()) return;
  for (const auto& warning : environment_warnings(topology, core::process_variables(), core::own_variables()))
    log::warn(warning);
}

}  // namespace hortator::runtime
