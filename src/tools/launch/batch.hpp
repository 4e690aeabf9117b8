#pragma once

#include <optional>
#include <string>

namespace hortator::tools {

/// The batch system of this machine.
struct Batch {
  std::string scheduler = "";           ///< "Slurm", "PBS" or "LSF"; empty: none
  std::optional<std::string> job = {};  ///< that this process is a part of

  /// A scheduler, but no job: others work here, too.
  bool is_login_node() const { return !scheduler.empty() && !job; }
};

Batch look_for_batch();

}  // namespace hortator::tools
