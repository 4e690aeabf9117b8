#pragma once

#include <hortator/training/state_dict.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

/// The numbers and texts of a state in JSON: each is restored bit for bit.
namespace hortator::checkpoint {

/// A whole number as such, a finite real number with a point, other real numbers as {"real": "<16 hex digits of its
/// bits>"}, UTF-8 as a string, other bytes as {"bytes": "<hex digits>"}.
nlohmann::json json_of(const StateDict::Value& value);

/// Stores under `name` what json_of() has written. Throws nlohmann's exceptions or FileError for anything else.
void put_value(StateDict& values, const std::string& name, const nlohmann::json& value);

}  // namespace hortator::checkpoint
