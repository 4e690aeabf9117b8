#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace hortator::tools {

/// The options of a command line that set settings with one value. The last value of an option counts, as for Slurm.
class GivenSettings {
 public:
  struct Option {
    std::string typed;
    std::string value;
    std::size_t position = 0;  ///< where its argument is in the parser's list
  };

  /// Notes that `option` sets `flag`; returns the position of the argument that it replaces. Throws UsageError if
  /// another spelling has set it to another value.
  std::optional<std::size_t> add(const std::string& flag, Option option);

 private:
  std::map<std::string, Option> options_;
};

}  // namespace hortator::tools
