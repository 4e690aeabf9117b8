#include "tools/command_line/typed_values.hpp"

#include <hortator/error.hpp>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "launch/settings/resources.hpp"

namespace hortator::tools {

std::string with_value(std::string_view option, const std::string& value, const char* separator) {
  const bool is_complete = value.empty() || option.ends_with('=');
  return text::concat(option, is_complete ? "" : separator, value);
}

std::vector<std::string> assignments_of(const std::string& value, const std::string& typed, bool is_list) {
  auto assignments = is_list ? text::split(value, ',') : std::vector<std::string>{value};
  for (auto& one : assignments) {
    if (one.find('=') != std::string::npos) continue;
    const auto own = core::variable(one.c_str());
    if (!own) throw UsageError({.what = text::concat(typed, ": the variable ", text::quote(one), " is not set")});
    one += "=" + *own;
  }
  return assignments;
}

std::string mail_types_of(const std::string& letters, const std::string& typed) {
  if (const auto types = launching::mail_types_of_points(letters)) return *types;
  throw UsageError({.what = text::concat(typed, ": expected letters of abe, got ", text::quote(letters))});
}

}  // namespace hortator::tools
