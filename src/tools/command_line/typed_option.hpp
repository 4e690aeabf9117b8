#pragma once

#include <optional>
#include <string>

namespace hortator::tools {

/// An option as the user typed it: "--num_processes=4" has the spelling "--num_processes" and the value "4".
struct TypedOption {
  std::string argument;
  std::string spelling;
  std::optional<std::string> value;  ///< attached to the spelling; empty: the next argument may be the value

  /// Divides a long option at '=', and a short one after its character.
  static TypedOption divide(const std::string& argument);

  /// "num-processes", for a long option.
  std::string name() const;
};

/// "num-processes" for "num_processes".
std::string with_dashes(std::string name);

/// "num_processes" for "num-processes".
std::string with_underscores(std::string name);

}  // namespace hortator::tools
