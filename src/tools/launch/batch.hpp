#pragma once

#include <optional>
#include <string>

namespace hortator::tools {

/// The batch system of this machine.
struct Batch {
  std::string scheduler = "";           ///< "Slurm", "PBS" or "LSF"; empty: none
  std::optional<std::string> job = {};  ///< the job that this process belongs to

  /// A machine with a scheduler, outside of a job: shared with other users.
  bool is_login_node() const { return !scheduler.empty() && !job; }
};

Batch detect_batch();

}  // namespace hortator::tools
