#include "simulation/sections/section.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/text/text.hpp"

namespace hortator::simulation {

using Shape = SettingNode::Shape;

Section::Section(SettingNode node, std::string file, std::string path)
    : node_(std::move(node)), file_(std::move(file)), path_(std::move(path)) {
  if (node_.shape != Shape::map && node_.shape != Shape::empty) throw error("", "expected lines \"key: value\"");
}

std::string Section::path_of(std::string_view key) const {
  if (path_.empty() || key.empty()) return path_ + std::string(key);
  return text::concat(path_, '.', key);
}

UsageError Section::error(std::string_view key, const std::string& what, const std::string& hint) const {
  const auto* node = key.empty() ? &node_ : find(key);
  const auto path = path_of(key);
  return UsageError({.what = text::concat(file_, ':', node == nullptr ? node_.line : node->line, ": ", path,
                                          path.empty() ? "" : ": ", what),
                     .hint = hint});
}

const SettingNode* Section::find(std::string_view key) const {
  known_.note(key);
  for (const auto& [name, value] : node_.entries) {
    if (name == key && value.shape != Shape::empty) return &value;
  }
  return nullptr;
}

const SettingNode& Section::require(std::string_view key) const {
  if (const auto* node = find(key)) return *node;
  throw error("", text::concat("'", key, "' is missing"));
}

const std::string& Section::text_of(std::string_view key, const SettingNode& node) const {
  if (node.shape != Shape::text) throw error(key, "expected one value");
  return node.text;
}

double Section::number_of(std::string_view key, const SettingNode& node) const {
  const auto& written = text_of(key, node);
  std::string_view digits = written;
  if (digits.starts_with('+') && !digits.substr(1).starts_with('-')) digits.remove_prefix(1);
  double value = 0;
  const auto* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);  // the same in every locale
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(value))
    throw error(key, text::concat("expected a number, got ", text::quote(written)));
  return value;
}

std::int64_t Section::integer_of(std::string_view key, const SettingNode& node, std::int64_t min) const {
  long long value = 0;
  const auto& digits = text_of(key, node);
  if (!text::parse_integer(digits, value) || value < min)
    throw error(key, text::concat("expected a whole number from ", min, ", got ", text::quote(digits)));
  return value;
}

std::vector<SettingNode> Section::items_of(std::string_view key, const SettingNode& node) const {
  if (node.shape != Shape::list) throw error(key, "expected a list: [first, second]");
  return node.items;
}

bool Section::has(std::string_view key) const { return find(key) != nullptr; }

std::string Section::text(std::string_view key) const { return text_of(key, require(key)); }

std::string Section::text(std::string_view key, const std::string& absent) const {
  return has(key) ? text(key) : absent;
}

std::string Section::choice(std::string_view key, const std::vector<std::string>& choices,
                            const std::string& absent) const {
  auto chosen = text(key, absent);
  if (std::ranges::find(choices, chosen) != choices.end()) return chosen;
  throw error(key, text::concat("expected one of ", text::join(choices), "; got ", text::quote(chosen)),
              text::suggestion(chosen, choices));
}

bool Section::flag(std::string_view key, bool absent) const {
  if (!has(key)) return absent;
  const auto value = text::parse_bool(text(key));
  if (!value) throw error(key, text::concat("expected true or false, got ", text::quote(text(key))));
  return *value;
}

double Section::number(std::string_view key) const { return number_of(key, require(key)); }

double Section::number(std::string_view key, double absent) const { return has(key) ? number(key) : absent; }

std::int64_t Section::integer(std::string_view key, std::int64_t min) const {
  return integer_of(key, require(key), min);
}

std::int64_t Section::integer(std::string_view key, std::int64_t min, std::int64_t absent) const {
  return has(key) ? integer(key, min) : absent;
}

std::vector<std::int64_t> Section::integers(std::string_view key, std::int64_t min) const {
  std::vector<std::int64_t> values;
  for (const auto& item : items_of(key, require(key))) values.push_back(integer_of(key, item, min));
  return values;
}

std::vector<double> Section::numbers(std::string_view key, const std::vector<double>& absent) const {
  if (!has(key)) return absent;
  std::vector<double> values;
  for (const auto& item : items_of(key, require(key))) values.push_back(number_of(key, item));
  return values;
}

std::vector<std::string> Section::texts(std::string_view key, const std::vector<std::string>& absent) const {
  if (!has(key)) return absent;
  std::vector<std::string> values;
  for (const auto& item : items_of(key, require(key))) values.push_back(text_of(key, item));
  return values;
}

std::optional<Section> Section::section(std::string_view key) const {
  if (const auto* node = find(key)) return Section(*node, file_, path_of(key));
  return {};
}

std::pair<std::string, Section> Section::typed(std::string_view key) const {
  const auto& node = require(key);
  if (node.shape == Shape::text) return {node.text, Section({.line = node.line}, file_, path_of(key))};
  Section section(node, file_, path_of(key));
  auto type = section.text("type");
  return {std::move(type), std::move(section)};
}

std::vector<std::string> Section::names() const {
  std::vector<std::string> all;
  for (const auto& [name, value] : node_.entries) all.push_back(name);
  ignore(all);
  return all;
}

void Section::ignore(const std::vector<std::string>& keys) const {
  for (const auto& key : keys) known_.note(key);
}

void Section::finish() const {
  const std::vector<std::string> known(known_.all().begin(), known_.all().end());
  std::vector<std::string> lines;
  for (const auto& [name, value] : node_.entries) {
    if (known_.contains(name)) continue;
    lines.push_back(text::concat(file_, ':', value.line, ": ", path_of(name), " is not a known key; ",
                                 text::suggestion(name, known)));
  }
  if (!lines.empty()) throw UsageError({.what = text::join(lines, "\n  ")});
}

}  // namespace hortator::simulation
