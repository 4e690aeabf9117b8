#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hortator::launching {

/// The PBS job of this process.
struct PbsJob {
  std::string id = "";
  std::string node_file = "";
  std::vector<std::string> hosts = {};    ///< each host once, in the order of the file
  int slots = 0;                          ///< lines of the file: the ranks that PBS expects
  std::optional<int> slots_of_host = {};  ///< where all hosts have the same number
  /// CPUs on all hosts, if PBS has set OMP_NUM_THREADS to those of a host.
  std::optional<int> cpus = {};
  /// CPUs on each host, as NCPUS gives them for the first.
  std::optional<int> cpus_of_host = {};
};

/// Reads the job from PBS's variables and its node file; nothing outside of a job. Throws UsageError for variables that
/// contradict each other or the file.
std::optional<PbsJob> read_pbs(const std::function<std::optional<std::string>(const char* name)>& variables,
                               const std::function<std::optional<std::string>(const std::string& file)>& read);

}  // namespace hortator::launching
