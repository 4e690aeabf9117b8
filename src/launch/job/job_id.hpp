#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launch/job/job.hpp"

namespace hortator::launching {

/// The job's number in what the scheduler's command has printed (Slurm's with --parsable, Grid Engine's with -terse),
/// also after other lines: sites let these commands print notes. Nothing if no line is a number of a job.
std::optional<std::string> job_id(Scheduler scheduler, std::string_view output);

}  // namespace hortator::launching
