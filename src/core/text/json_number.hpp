#pragma once

#include <nlohmann/json_fwd.hpp>

namespace hortator::core {

/// JSON for any double: values that JSON cannot express become "NaN", "Infinity" and "-Infinity".
nlohmann::ordered_json json_of(double number);
/// The reverse; NaN for anything that is not a number.
double number_of(const nlohmann::ordered_json& json);

}  // namespace hortator::core
