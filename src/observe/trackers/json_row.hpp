#pragma once

#include <cstdint>
#include <hortator/tracker.hpp>
#include <optional>
#include <string>
#include <string_view>

/// Records as lines of JSON. Pure functions.
namespace hortator::observe {

/// {"step":12,"time":1732218651.25,"loss":0.5} and a newline. Numbers that JSON cannot express are "NaN",
/// "Infinity" or "-Infinity".
std::string json_row(const TrackerRecord& record);

/// The step of such a line; nothing for any other line.
std::optional<std::int64_t> step_of_json_row(std::string_view row);

/// {"learning_rate": 0.001, ...}, indented.
std::string json_config(const TrackerConfig& config);

/// The shortest text that reads back as the same number.
std::string number_text(double number);

}  // namespace hortator::observe
