#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hortator::launching {

/// Quotes one argument for a POSIX shell, if necessary.
std::string shell_quote(std::string_view argument);

/// The command as a line that can be pasted into a shell.
std::string shell_line(std::span<const std::string> arguments);

}  // namespace hortator::launching
