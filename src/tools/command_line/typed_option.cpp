#include "tools/command_line/typed_option.hpp"

#include <algorithm>

namespace hortator::tools {

TypedOption TypedOption::divide(const std::string& argument) {
  const bool is_long = argument.starts_with("--");
  const auto end = is_long ? argument.find('=') : std::min<std::size_t>(2, argument.size());
  TypedOption option{.argument = argument, .spelling = argument.substr(0, end), .value = {}};
  if (end < argument.size()) option.value = argument.substr(end + (is_long ? 1 : 0));
  return option;
}

std::string TypedOption::name() const { return with_dashes(spelling.substr(2)); }

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string with_underscores(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace hortator::tools
