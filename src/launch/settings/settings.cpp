#include "launch/settings/settings.hpp"

#include <algorithm>
#include <iomanip>
#include <ranges>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

bool adds_up(const Key& key) { return key.kind == Kind::list || key.kind == Kind::variables; }

std::string name_of(const std::string& assignment) { return assignment.substr(0, assignment.find('=')); }

void replace_or_append(std::vector<std::string>& words, const std::string& assignment) {
  const auto same = std::find_if(words.begin(), words.end(),
                                 [&](const auto& known) { return name_of(known) == name_of(assignment); });
  if (same != words.end()) {
    *same = assignment;
  } else {
    words.push_back(assignment);
  }
}

// `below` is what lower layers have said so far.
Given on_top(const Key& key, Given below, const Given& given) {
  if (!adds_up(key) || below.words.empty()) return given;
  for (const auto& word : given.words) {
    if (key.kind == Kind::variables) {
      replace_or_append(below.words, word);
    } else {
      below.words.push_back(word);
    }
  }
  below.origin += " + " + given.origin;
  return below;
}

bool is_true(const Given& given) { return text::parse_bool(given.words.front()).value_or(false); }

// Quoted wherever YAML might take it for something else.
std::string yaml_word(const std::string& word) {
  const bool is_plain = !word.empty() &&
                        word.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789_./+-") == std::string::npos &&
                        word[0] != '-';
  if (is_plain) return word;
  std::string quoted = "\"";
  for (const char c : word) {
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
    Given value;
    if (!key.builtin.empty()) value = {{std::string(key.builtin)}, "built-in"};
    for (const auto& layer : std::views::reverse(layers)) {
      const auto given = layer.find(key.name);
      if (given != layer.end() && !given->second.words.empty()) value = on_top(key, value, given->second);
    }
    if (!value.words.empty()) values_.emplace(key.name, std::move(value));
  }
}

const Given* Settings::find(std::string_view key) const {
  const auto given = values_.find(key);
  return given != values_.end() ? &given->second : nullptr;
}

std::optional<std::string> Settings::word(std::string_view key) const {
  const auto* given = find(key);
  return given ? std::optional(given->words.front()) : std::nullopt;
}

std::optional<int> Settings::number(std::string_view key) const {
  long long value = 0;
  const auto* given = find(key);
  if (!given || !text::parse_integer(given->words.front(), value)) return std::nullopt;
  return static_cast<int>(value);
}

bool Settings::is_on(std::string_view key) const {
  const auto* given = find(key);
  return given && is_true(*given);
}

std::vector<std::string> Settings::list(std::string_view key) const {
  const auto* given = find(key);
  return given ? given->words : std::vector<std::string>{};
}

std::vector<std::string> Settings::for_program() const {
  std::vector<std::string> variables;
  for (const auto& key : keys()) {
    const auto* given = find(key.name);
    if (!key.is_for_program || !given || given->origin == "built-in") continue;
    const auto value = key.kind == Kind::onoff ? std::string(is_true(*given) ? "1" : "0") : given->words.front();
    variables.push_back(text::concat(key.variable, '=', value));
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

std::string yaml_value(const Key& key, const Given& given) {
  if (!adds_up(key)) return yaml_word(given.words.front());
  std::vector<std::string> words;
  for (const auto& word : given.words) {
    const auto end = word.find('=');
    words.push_back(key.kind == Kind::list ? yaml_word(word)
                                           : text::concat(word.substr(0, end), ": ", yaml_word(word.substr(end + 1))));
  }
  const auto all = text::join(words);
  return key.kind == Kind::list ? "[" + all + "]" : "{" + all + "}";
}

Layer from_environment(const std::function<std::optional<std::string>(const char* name)>& variables) {
  Layer layer;
  for (const auto& key : keys()) {
    const std::string name(key.variable);
    const auto value = variables(name.c_str());
    if (!value || value->empty()) continue;
    const auto words = adds_up(key) ? text::split(*value, '\n') : std::vector<std::string>{*value};
    check_text(key, words, name + ": ");
    layer.emplace(key.name, Given{words, name});
  }
  return layer;
}

}  // namespace hortator::launching
