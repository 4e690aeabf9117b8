#pragma once

#include <string>

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// The content of a lock file: the run that holds the folder.
struct LockHolder {
  std::string run = {};  ///< the same on all ranks of a run; empty: unknown
  std::string host = {};
  long pid = 0;
  std::string job = {};    ///< as of job_of()
  int restarts = 0;        ///< how often the scheduler has requeued the job
  std::string since = {};  ///< UTC
  /// The run of hortator_begin (a job may have several): unique, and readable. Empty for other programs.
  std::string part = {};
  int ranks = 0;  ///< of the Accelerator; 0: unknown
};

/// The scheduler's job of this process: "slurm 123", "pbs 12.host"; empty outside of jobs.
std::string job_of(const core::Variables& variables);

/// This process as a holder.
LockHolder lock_holder(const core::Variables& variables = core::process_variables());

std::string to_json(const LockHolder& holder);
LockHolder parse_holder(const std::string& json);  ///< members that cannot be read stay empty
/// "pid 7 on n1, job slurm 123, since 2026-11-25T03:00:00Z".
std::string to_string(const LockHolder& holder);
/// Whether `before` has certainly ended: it was an earlier start of the same requeued job.
bool is_superseded(const LockHolder& before, const LockHolder& now);

}  // namespace hortator::runtime
