#include "runtime/variables.hpp"

#include <limits>

#include "base/text.hpp"
#include "base/variable.hpp"

namespace hortator::runtime {

Variables process_variables() { return base::variable; }

std::optional<int> number(const Variables& variables, const char* name) {
  const auto text = variables(name);
  long long value = 0;
  if (!text || !text::parse_integer(*text, value)) return std::nullopt;
  if (value < 0 || value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace hortator::runtime
