#pragma once

#include <string>
#include <vector>

#include "launch/job/job.hpp"

namespace hortator::launching {

/// The options of sbatch or qsub for the lines at the script's head, without "#SBATCH ". Those lines are no shell:
/// nothing can be quoted there, so every value is made of letters that mean nothing to anybody, or is refused
/// (UsageError).
std::vector<std::string> directives(const Job& job);

}  // namespace hortator::launching
