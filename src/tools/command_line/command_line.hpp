#pragma once

#include <string>
#include <vector>

#include "tools/command_line/options.hpp"

namespace hortator::tools {

/// The arguments as Boost's parser reads them: values that equal the name of an option stay values, text comes after
/// "--", and the spellings of Slurm, PBS, mpirun and Accelerate become options of Hortator. Options that have no effect
/// are reported on standard error, each once. Throws UsageError for a value or an option of theirs that Hortator does
/// not support.
Arguments plain_arguments(const Arguments& arguments, const Options& options);

/// All long options that the verb accepts, for suggestions.
std::vector<std::string> known_spellings(const Options& options);

/// The part of --help about these spellings; empty for a verb without settings.
std::string synonym_help(const Options& options);

}  // namespace hortator::tools
