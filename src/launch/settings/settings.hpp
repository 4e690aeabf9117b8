#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/keys.hpp"

/// The effective settings: flags, environment variables, files and built-in values, merged.
namespace hortator::launching {

struct SettingValue {
  std::vector<std::string> values = {};
  std::string origin = "";  ///< "--ranks", "HORTATOR_RANKS", "hortator.yaml:3"
};

/// The settings from one source, by the names of keys().
using Layer = std::map<std::string, SettingValue, std::less<>>;

class Settings {
 public:
  /// For each key, the first of `layers` that has it wins. Lists and variables add up, beginning with the values of the
  /// last layer. The built-in values rank below all layers. A word of Key::automatic stands for its value where
  /// no lower layer has one.
  explicit Settings(const std::vector<Layer>& layers);

  /// Null when no layer has the key and it has no built-in value.
  const SettingValue* find(std::string_view key) const;

  std::optional<std::string> word(std::string_view key) const;
  std::optional<int> number(std::string_view key) const;
  bool is_on(std::string_view key) const;
  std::vector<std::string> list(std::string_view key) const;

  /// NAME=value for the environment of the ranks. Only keys that a layer has: the program has its own defaults.
  std::vector<std::string> for_program() const;

  /// The settings as a file: "ranks: 4", a line per key.
  std::string show() const;
  /// The same with the origin of each value: "ranks: 4   # --ranks".
  std::string explain() const;

 private:
  Layer values_;
};

/// The value in the YAML syntax of a file of settings.
std::string yaml_value(const Key& key, const SettingValue& given);

/// The settings from the environment: every key whose variable is set. Throws UsageError that names the variable.
Layer from_environment(const std::function<std::optional<std::string>(const char* name)>& variables);

}  // namespace hortator::launching
