#pragma once

#include "launch/job/job.hpp"

namespace hortator::launching {

/// Throws UsageError for settings of a job that contradict each other, and for what the scheduler does not know.
void check_conflicts(const Job& job);

}  // namespace hortator::launching
