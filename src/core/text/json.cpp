#include "core/text/json.hpp"

#include <cmath>
#include <limits>

namespace hortator::core {

bool is_shallow(std::string_view json, int levels) {
  int level = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string) continue;
    if (c == '{' || c == '[') ++level;
    if (c == '}' || c == ']') --level;
    if (level > levels) return false;
  }
  return true;
}

// nlohmann's writer checks the text.
bool is_utf8(std::string_view text) {
  try {
    return !nlohmann::json(text).dump().empty();
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

nlohmann::ordered_json json_of(double number) {
  if (std::isfinite(number)) return number;
  if (std::isnan(number)) return "NaN";
  return number > 0 ? "Infinity" : "-Infinity";
}

double number_of(const nlohmann::ordered_json& json) {
  if (json.is_number()) return json.get<double>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (json == "Infinity") return infinity;
  return json == "-Infinity" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace hortator::core
