#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Commands of settings that are run without a shell. Pure functions.
namespace hortator::launching {

/// The arguments of a command: blanks separate them, quotes hold them together, and outside of single quotes a
/// backslash takes the next character as it is. Nothing else is special. Throws UsageError, with the name of the
/// setting, if there is no argument, or a quote is not closed.
std::vector<std::string> command_arguments(std::string_view setting, std::string_view command);

/// The arguments with `file` for each {} in them, or as one more argument if there is none.
std::vector<std::string> with_file(std::vector<std::string> arguments, const std::string& file);

}  // namespace hortator::launching
