#include "observe/trackers/json_row.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace hortator::observe {
namespace {

constexpr std::string_view beginning = R"({"step":)";

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_number(double number) {
  if (std::isnan(number)) return R"("NaN")";
  if (std::isinf(number)) return number > 0 ? R"("Infinity")" : R"("-Infinity")";
  return number_text(number);
}

}  // namespace

std::string number_text(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

std::string json_row(const TrackerRecord& record) {
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "%.3f", record.time);
  auto row = std::string(beginning) + std::to_string(record.step) + R"(,"time":)" + time.data();
  for (const auto& [name, value] : record.values)
    row.append(",").append(quoted(name)).append(":").append(json_number(value));
  return row + "}\n";
}

std::optional<std::int64_t> step_of_json_row(std::string_view row) {
  if (!row.starts_with(beginning) || !row.ends_with('}')) return {};
  row.remove_prefix(beginning.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), step);
  return error == std::errc() && *end == ',' ? std::optional(step) : std::nullopt;
}

std::string json_config(const TrackerConfig& config) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& [name, setting] : config) {
    std::visit([&](const auto& held) { object[name] = held; }, setting.value());
  }
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace hortator::observe
