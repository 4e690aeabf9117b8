#include "core/environment/setting_key.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::core {
namespace {

#define LAUNCH_SETTING(key, ...) SettingKey{.name = #key, __VA_ARGS__, .is_for_program = true},
constexpr auto table = std::to_array<SettingKey>({
#include "core/environment/program_options.inc"
});

template <typename Value>
Value or_refused(std::optional<Value> value, const SettingKey& key, const SetVariable& variable) {
  if (!value) throw_unexpected(key, variable.value, text::concat(variable.name, ": "));
  return *value;
}

}  // namespace

std::string flag_of(const SettingKey& key) {
  std::string flag(key.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string variable_of(const SettingKey& key) {
  std::string variable = "HORTATOR_";
  for (const char c : key.name) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

std::span<const SettingKey> program_settings() { return table; }

const SettingKey& program_setting(std::string_view name) { return *std::ranges::find(table, name, &SettingKey::name); }

std::optional<int> parse_whole_number(const std::string& text, int min) {
  long long value = 0;
  const bool is_valid = text::parse_integer(text, value) && value >= min && value <= 100'000'000;
  return is_valid ? std::optional(static_cast<int>(value)) : std::nullopt;
}

std::optional<double> parse_amount(const std::string& text) {
  double value = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  const bool is_valid = result.ec == std::errc() && result.ptr == end && value >= 0 && std::isfinite(value);
  return is_valid ? std::optional(value) : std::nullopt;
}

std::optional<Interval> parse_interval(const std::string& text) {
  if (const auto steps = parse_whole_number(text, 1)) return Interval{.steps = *steps};
  if (const auto time = units::parse_duration(text)) return Interval{.time = *time};
  return {};
}

std::optional<std::size_t> parse_choice(const SettingKey& key, const std::string& text) {
  const auto choices = text::split(std::string(key.choices), ' ');
  const auto found = std::ranges::find(choices, text);
  return found != choices.end() ? std::optional(static_cast<std::size_t>(found - choices.begin())) : std::nullopt;
}

std::string expected(const SettingKey& key) {
  switch (key.kind) {
    case KeyKind::count:
      return "a whole number from 1";
    case KeyKind::number:
      return "a whole number from 0";
    case KeyKind::amount:
      return text::concat("a number from 0", key.automatic.empty() ? "" : ", or auto");
    case KeyKind::onoff:
      return "true or false";
    case KeyKind::choice:
      return "one of " + text::join(text::split(std::string(key.choices), ' '));
    case KeyKind::time:
      return "HH:MM:SS or D-HH:MM:SS";
    case KeyKind::interval:
      return "a number of steps, such as 10, or a time, such as 30s, 10min or 1h";
    case KeyKind::gpus:
      return "a number of GPUs, such as 4 or a100:4";
    case KeyKind::memory:
      return "an amount of memory, such as 64G";
    case KeyKind::array:
      return "the numbers of an array, such as 0-3 or 0-9%2";
    case KeyKind::variables:
      return "NAME=value";
    case KeyKind::word:
    case KeyKind::list:
      break;
  }
  return "a value";
}

void throw_unexpected(const SettingKey& key, const std::string& value, std::string_view where) {
  throw UsageError({.what = text::concat(where, where.empty() ? "Expected " : "expected ", expected(key), ", got ",
                                         text::quote(value))});
}

int read_count(const SettingKey& key, const SetVariable& variable) {
  return or_refused(parse_whole_number(variable.value, 1), key, variable);
}

bool read_onoff(const SettingKey& key, const SetVariable& variable) {
  return or_refused(text::parse_bool(variable.value), key, variable);
}

double read_amount(const SettingKey& key, const SetVariable& variable) {
  return or_refused(parse_amount(variable.value), key, variable);
}

Interval read_interval(const SettingKey& key, const SetVariable& variable) {
  return or_refused(parse_interval(variable.value), key, variable);
}

std::size_t read_choice(const SettingKey& key, const SetVariable& variable) {
  return or_refused(parse_choice(key, variable.value), key, variable);
}

}  // namespace hortator::core
