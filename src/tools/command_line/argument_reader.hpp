#pragma once

#include <string>

#include "tools/command_line/options.hpp"
#include "tools/command_line/typed_option.hpp"

namespace hortator::tools {

/// The typed arguments, from the first to the last.
class ArgumentReader {
 public:
  explicit ArgumentReader(const Arguments& arguments) : arguments_(arguments) {}

  bool is_at_end() const { return at_ == arguments_.size(); }
  const std::string& next() { return arguments_[at_++]; }

  /// The next argument, which stays there; null at the end.
  const std::string* peek() const { return is_at_end() ? nullptr : &arguments_[at_]; }

  /// The value that is attached to the option, otherwise the next argument. Throws UsageError if there is none.
  std::string value_of(const TypedOption& option);

 private:
  const Arguments& arguments_;
  std::size_t at_ = 0;
};

}  // namespace hortator::tools
