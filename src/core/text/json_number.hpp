#pragma once

#include <nlohmann/json_fwd.hpp>

namespace hortator::core {

/// Numbers that JSON lacks are "NaN", "Infinity" and "-Infinity".
nlohmann::ordered_json json_of(double number);
double number_of(const nlohmann::ordered_json& json);

}  // namespace hortator::core
