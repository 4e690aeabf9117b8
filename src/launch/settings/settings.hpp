#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/keys.hpp"

/// What holds after flags, variables, files and built-in values have had their say.
namespace hortator::launching {

struct Given {
  std::vector<std::string> words = {};
  std::string origin = "";  ///< "--ranks", "HORTATOR_RANKS", "hortator.yaml:3"
};

/// What one source says, by the names of keys().
using Layer = std::map<std::string, Given, std::less<>>;

class Settings {
 public:
  /// Of all that say something about a key, the first of `layers` wins; lists and variables add up, the last layer's
  /// words first. The built-in values come below them all.
  explicit Settings(const std::vector<Layer>& layers);

  /// Nothing when nobody has said anything, not even the table of keys.
  const Given* find(std::string_view key) const;

  std::optional<std::string> word(std::string_view key) const;
  std::optional<int> number(std::string_view key) const;
  bool is_on(std::string_view key) const;
  std::vector<std::string> list(std::string_view key) const;

  /// NAME=value of what the ranks are to know, as far as somebody has said it: built-in values are the program's own.
  std::vector<std::string> for_program() const;

  /// "num_processes: 4", a line a key: a file of settings.
  std::string show() const;
  /// The same, with where each value comes from: "num_processes: 4   # --ranks".
  std::string explain() const;

 private:
  Layer values_;
};

/// The value as a file of settings has it.
std::string yaml_value(const Key& key, const Given& given);

/// What the environment says: every key's variable that is set. UsageError names the variable.
Layer from_environment(const std::function<std::optional<std::string>(const char* name)>& variables);

}  // namespace hortator::launching
