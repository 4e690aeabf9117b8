#pragma once

#include <string>
#include <vector>

#include "launch/job/job.hpp"

namespace hortator::launching {

/// The options of the program that submits, for the head of the script, without "#SBATCH ". These lines are not shell
/// code: nothing can be quoted. Throws UsageError for a value with characters that could have a special meaning.
std::vector<std::string> directives(const Job& job);

}  // namespace hortator::launching
