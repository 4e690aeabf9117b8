#include "parallel/zero/parameter_names.hpp"

#include <algorithm>
#include <cstddef>
#include <hortator/error.hpp>

#include "core/text/pattern.hpp"
#include "core/text/text.hpp"

namespace hortator::parallel {

bool is_among(const std::vector<std::string>& names, const std::string& parameter) {
  const auto names_part = [&](std::string_view part) {
    return std::ranges::any_of(names, [&](const std::string& name) { return text::fits_pattern(part, name); });
  };
  for (auto end = parameter.find('.'); end != std::string::npos; end = parameter.find('.', end + 1)) {
    if (names_part(std::string_view(parameter).substr(0, end))) return true;
  }
  return names_part(parameter);
}

void require_known(std::string_view option, const std::vector<std::string>& names,
                   const std::vector<std::string>& parameters) {
  for (const auto& name : names) {
    if (std::ranges::any_of(parameters, [&](const auto& parameter) { return is_among({name}, parameter); })) continue;
    throw UsageError({.what = text::concat(option, ": the model has no parameter or module ", text::quote(name)),
                      .hint = "use names as named_parameters() returns them"});
  }
}

}  // namespace hortator::parallel
