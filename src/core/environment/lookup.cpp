#include "core/environment/lookup.hpp"

#include <hortator/error.hpp>
#include <limits>

#include "core/environment/variable.hpp"
#include "core/text/text.hpp"

namespace hortator::core {

Variables process_variables() { return core::variable; }

std::optional<int> number(const Variables& variables, const char* name) {
  const auto text = variables(name);
  long long value = 0;
  if (!text || !text::parse_integer(*text, value)) return std::nullopt;
  if (value < 0 || value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(value);
}

std::optional<bool> yes_or_no(const Variables& variables, const char* name, const char* hint) {
  const auto words = variables(name);
  if (!words || words->empty()) return std::nullopt;
  if (const auto said = text::parse_bool(*words)) return said;
  throw UsageError(
      {.what = text::concat(name, " is ", text::quote(*words)), .why = "that is neither yes nor no", .hint = hint});
}

}  // namespace hortator::core
