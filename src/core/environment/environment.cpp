#include "core/environment/environment.hpp"

#include <cstdlib>
#include <hortator/error.hpp>
#include <limits>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::core {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

Variables process_variables() { return core::variable; }

std::optional<SetVariable> first_set(const Variables& variables, std::initializer_list<const char*> names) {
  for (const auto* name : names) {
    if (auto value = variables(name); value && !value->empty()) return SetVariable{name, *std::move(value)};
  }
  return std::nullopt;
}

std::optional<int> number(const Variables& variables, const char* name) {
  const auto text = variables(name);
  long long value = 0;
  if (!text || !text::parse_integer(*text, value)) return std::nullopt;
  if (value < 0 || value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(value);
}

std::optional<bool> yes_or_no(const Variables& variables, const char* name, const char* hint) {
  const auto value = variables(name);
  if (!value || value->empty()) return std::nullopt;
  if (const auto parsed = text::parse_bool(*value)) return parsed;
  throw UsageError(
      {.what = text::concat(name, " is ", text::quote(*value)), .why = "that is neither yes nor no", .hint = hint});
}

}  // namespace hortator::core
