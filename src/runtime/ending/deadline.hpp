#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/environment/environment.hpp"

/// When the job's time is over.
namespace hortator::runtime {

using Deadline = std::chrono::sys_seconds;

/// Runs a command line and gives what it prints; nothing when it cannot be run or fails.
using Ask = std::function<std::optional<std::string>(const std::string& command)>;
Ask ask_shell();

/// From the environment alone: HORTATOR_DEADLINE (seconds since 1970, as `date +%s -d '+2 hours'` prints them), or
/// what newer Slurms say themselves.
std::optional<Deadline> known_deadline(const core::Variables& variables);

/// That, or what Slurm or PBS answer about the job that this is: a process is started and a daemon asked, so one rank
/// asks, and rarely. Nothing outside of jobs and in jobs without a limit.
std::optional<Deadline> ask_deadline(const core::Variables& variables, const Ask& ask, Deadline now);

/// Of squeue's "%L": "1-02:03:04", "02:03:04", "03:04", also "UNLIMITED".
std::optional<std::chrono::seconds> parse_slurm_time(std::string_view text);
/// Of qstat -f: the wall time that the job may use less what it has used.
std::optional<std::chrono::seconds> parse_qstat_time_left(std::string_view listing);

}  // namespace hortator::runtime
