#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/environment/environment.hpp"

/// The time at which the job's time limit is reached.
namespace hortator::runtime {

using Deadline = std::chrono::sys_seconds;

/// Runs a command line and returns its output; empty when it cannot be run or fails.
using Ask = std::function<std::optional<std::string>(const std::string& command)>;
Ask ask_shell();

/// The deadline from the environment: HORTATOR_DEADLINE (seconds since 1970, as `date +%s -d '+2 hours'` prints them),
/// or the variable of newer Slurm versions.
std::optional<Deadline> known_deadline(const core::Variables& variables);

/// The same, or else the answer of Slurm or PBS about this job. It starts a process that queries a daemon, so only one
/// rank calls it, and rarely. Empty outside jobs and in jobs without a limit.
std::optional<Deadline> ask_deadline(const core::Variables& variables, const Ask& ask, Deadline now);

/// How long before the deadline a run stops, in addition to the time for its saves: HORTATOR_STOP_MARGIN, such as 20s,
/// or one minute. A job that is warned later than that sets it. Throws UsageError for any other value.
std::chrono::milliseconds stop_margin(const core::Variables& variables);

/// Parses squeue's "%L": "1-02:03:04", "02:03:04", "03:04", also "UNLIMITED".
std::optional<std::chrono::seconds> parse_slurm_time(std::string_view text);
/// Parses the output of qstat -f: the job's start plus its wall time limit; without a start, `now` plus the limit minus
/// the wall time used, which PBS updates only every few minutes.
std::optional<Deadline> parse_qstat_deadline(std::string_view listing, Deadline now);

}  // namespace hortator::runtime
