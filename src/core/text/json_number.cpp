#include "core/text/json_number.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace hortator::core {

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
