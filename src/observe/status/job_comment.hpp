#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/status/status_record.hpp"

/// A line about a run that the scheduler shows beside the job: squeue -O comment, sacct -o comment. Pure.
namespace hortator::observe {

/// "step 4200/9000 loss 1.93 82.1 samples/s ckpt 12:03"; at the end "over: step 9000/9000 ...". The time of the last
/// save is in UTC. At most 200 characters, without those that a scheduler might interpret.
std::string job_comment(const RankStatus& main, std::optional<double> samples_per_second);

/// The command that sets the comment of a job ("slurm 1234", "pbs 12.server"); empty outside of jobs.
std::vector<std::string> comment_command(std::string_view job, const std::string& comment);

}  // namespace hortator::observe
