#include "launch/settings/settings.hpp"

#include <algorithm>
#include <iomanip>
#include <ranges>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

constexpr auto built_in = "built-in";  // an origin

bool adds_up(const Key& key) { return key.kind == KeyKind::list || key.kind == KeyKind::variables; }

std::string name_of(const std::string& assignment) { return assignment.substr(0, assignment.find('=')); }

void replace_or_append(std::vector<std::string>& assignments, const std::string& assignment) {
  const auto same = std::find_if(assignments.begin(), assignments.end(),
                                 [&](const auto& known) { return name_of(known) == name_of(assignment); });
  if (same != assignments.end()) {
    *same = assignment;
  } else {
    assignments.push_back(assignment);
  }
}

// Merges `given` into `below`, the value from all lower layers.
SettingValue on_top(const Key& key, SettingValue below, const SettingValue& given) {
  if (const auto value = automatic_value(key, given.values.front())) {
    const bool is_open = below.values.empty() || below.origin == built_in;
    return is_open ? SettingValue{{*value}, given.origin} : below;
  }
  if (!adds_up(key) || below.values.empty()) return given;
  for (const auto& value : given.values) {
    if (key.kind == KeyKind::variables) {
      replace_or_append(below.values, value);
    } else {
      below.values.push_back(value);
    }
  }
  below.origin += " + " + given.origin;
  return below;
}

bool is_true(const SettingValue& given) { return text::parse_bool(given.values.front()).value_or(false); }

// A YAML scalar, quoted wherever YAML could read the plain text as something else.
std::string yaml_scalar(const std::string& text) {
  const bool is_plain = !text.empty() &&
                        text.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789_./+-") == std::string::npos &&
                        text[0] != '-';
  if (is_plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '\n') {
      quoted += "\\n";
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

Settings::Settings(const std::vector<Layer>& layers) {
  for (const auto& key : keys()) {
    SettingValue value;
    if (!key.builtin.empty()) value = {{std::string(key.builtin)}, built_in};
    for (const auto& layer : std::views::reverse(layers)) {
      const auto given = layer.find(key.name);
      if (given != layer.end() && !given->second.values.empty()) value = on_top(key, value, given->second);
    }
    if (!value.values.empty()) values_.emplace(key.name, std::move(value));
  }
}

const SettingValue* Settings::find(std::string_view key) const {
  const auto given = values_.find(key);
  return given != values_.end() ? &given->second : nullptr;
}

std::optional<std::string> Settings::word(std::string_view key) const {
  const auto* given = find(key);
  return given ? std::optional(given->values.front()) : std::nullopt;
}

std::optional<int> Settings::number(std::string_view key) const {
  long long value = 0;
  const auto* given = find(key);
  if (!given || !text::parse_integer(given->values.front(), value)) return std::nullopt;
  return static_cast<int>(value);
}

bool Settings::is_on(std::string_view key) const {
  const auto* given = find(key);
  return given && is_true(*given);
}

std::vector<std::string> Settings::list(std::string_view key) const {
  const auto* given = find(key);
  return given ? given->values : std::vector<std::string>{};
}

std::vector<std::string> Settings::for_program() const {
  std::vector<std::string> variables;
  for (const auto& key : keys()) {
    const auto* given = find(key.name);
    if (!key.is_for_program || !given || given->origin == built_in) continue;
    const auto value = key.kind == KeyKind::onoff ? std::string(is_true(*given) ? "1" : "0") : given->values.front();
    variables.push_back(text::concat(variable_of(key), '=', value));
  }
  return variables;
}

std::string Settings::show() const {
  std::ostringstream out;
  for (const auto& key : keys()) {
    if (const auto* given = find(key.name)) out << key.name << ": " << yaml_value(key, *given) << '\n';
  }
  return std::move(out).str();
}

std::string Settings::explain() const {
  std::ostringstream out;
  for (const auto& key : keys()) {
    const auto* given = find(key.name);
    if (!given) continue;
    out << std::left << std::setw(52) << text::concat(key.name, ": ", yaml_value(key, *given)) << " # " << given->origin
        << '\n';
  }
  return std::move(out).str();
}

std::string yaml_value(const Key& key, const SettingValue& given) {
  if (!adds_up(key)) return yaml_scalar(given.values.front());
  std::vector<std::string> items;
  for (const auto& value : given.values) {
    const auto end = value.find('=');
    items.push_back(key.kind == KeyKind::list
                        ? yaml_scalar(value)
                        : text::concat(value.substr(0, end), ": ", yaml_scalar(value.substr(end + 1))));
  }
  const auto all = text::join(items);
  return key.kind == KeyKind::list ? "[" + all + "]" : "{" + all + "}";
}

Layer from_environment(const std::function<std::optional<std::string>(const char* name)>& variables) {
  Layer layer;
  for (const auto& key : keys()) {
    const auto name = variable_of(key);
    const auto value = variables(name.c_str());
    if (!value || value->empty()) continue;
    const auto values = adds_up(key) ? text::split(*value, '\n') : std::vector<std::string>{*value};
    check_values(key, values, name + ": ");
    layer.emplace(key.name, SettingValue{values, name});
  }
  return layer;
}

}  // namespace hortator::launching
