#pragma once

#include <hortator/error.hpp>
#include <source_location>
#include <string_view>

namespace hortator::formats {

/// A file cannot be read or written, or its contents are not what they should be.
class FileError : public Error {
 public:
  using Error::Error;
};

/// Throws FileError "Cannot <task>: <the system's message for `code`>", with a hint for common codes.
[[noreturn]] void throw_system_error(std::string_view task, int code,
                                     std::source_location where = std::source_location::current());

}  // namespace hortator::formats
