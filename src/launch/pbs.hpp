#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hortator::launching {

/// What PBS says of the job that this process is in.
struct PbsJob {
  std::string id = "";
  std::string node_file = "";
  std::vector<std::string> hosts = {};  ///< each once, in the order of the file
  int slots = 0;                        ///< lines of the file: ranks that PBS has counted on
};

/// From PBS's variables and the text of its node file; nothing outside of a job. UsageError for variables that
/// contradict each other: a number of nodes or of ranks that the file does not have.
std::optional<PbsJob> read_pbs(const std::function<std::optional<std::string>(const char* name)>& variables,
                               const std::function<std::optional<std::string>(const std::string& file)>& read);

}  // namespace hortator::launching
