#pragma once

#include <hortator/training/state_dict.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

/// Numbers and texts in JSON, such that each comes back bit for bit.
namespace hortator::checkpoint {

/// A whole number as one, a finite real one with a point, other reals as {"real": "<16 hex digits of its bits>"}, UTF-8
/// as a text, other bytes as {"bytes": "<hex digits>"}.
nlohmann::json json_of(const StateDict::Value& value);

/// Throws nlohmann's exceptions for what json_of() does not make.
void put_value(StateDict& values, const std::string& name, const nlohmann::json& value);

bool is_utf8(const std::string& words);

}  // namespace hortator::checkpoint
