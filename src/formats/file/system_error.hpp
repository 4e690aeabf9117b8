#pragma once

#include <source_location>
#include <string_view>

namespace hortator::formats {

/// Throws FileError "cannot <task>: <the system's words for `code`>", with what to do about the usual ones.
[[noreturn]] void throw_system_error(std::string_view task, int code,
                                     std::source_location where = std::source_location::current());

}  // namespace hortator::formats
