#include "core/text/pattern.hpp"

#include <cctype>
#include <cstddef>

namespace hortator::text {

bool fits_pattern(std::string_view name, std::string_view pattern) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  name.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (std::size_t skipped = 0; skipped <= name.size(); ++skipped) {
    if (fits_pattern(name.substr(skipped), pattern)) return true;
  }
  return false;
}

std::optional<std::string> names_of_expression(std::string_view expression) {
  std::string names;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    const auto next = expression.substr(i).size() > 1 ? expression[i + 1] : '\0';
    const bool is_any = c == '.' && next == '*';
    if (is_any || (c == '\\' && next == '.')) {
      names += is_any ? '*' : '.';
      ++i;
    } else if (c == '|') {
      names += ',';
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.') {
      names += c;
    } else {
      return {};
    }
  }
  return names;
}

}  // namespace hortator::text
