#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hortator::launching {

/// One word as a POSIX shell would have to be given it.
std::string shell_quote(std::string_view word);

/// A command that can be pasted into a shell.
std::string shell_line(std::span<const std::string> words);

}  // namespace hortator::launching
