#include "runtime/variables.hpp"

#include <cstdlib>
#include <limits>

#include "base/text.hpp"

namespace hortator::runtime {

Variables process_variables() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::optional<int> number(const Variables& variables, const char* name) {
  const auto text = variables(name);
  long long value = 0;
  if (!text || !text::parse_integer(*text, value)) return std::nullopt;
  if (value < 0 || value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace hortator::runtime
