#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/environment/environment.hpp"

/// Settings: what flags, variables and files have in common, in the launcher and in programs.
namespace hortator::core {

enum class KeyKind {
  count,      ///< a whole number from 1
  number,     ///< a whole number from 0
  amount,     ///< a number from 0, such as 0.5
  onoff,      ///< true or false, in any spelling that Accelerate accepts
  choice,     ///< one of SettingKey::choices
  word,       ///< text
  time,       ///< "HH:MM:SS", as schedulers write it
  interval,   ///< a number of steps, or a time: "10", "30s"
  gpus,       ///< "4", "a100:4" or "a100:2,h100:2"
  memory,     ///< "64G"
  array,      ///< "0-3", "1,5" or "0-9%2"
  list,       ///< several texts; layers add up
  variables,  ///< NAME=value; layers add up, and for one name the higher layer wins
};

/// Which commands have the key's flag.
enum class Scope { launch, job, both };

/// A setting. Its flag and its variable are made of its name.
struct SettingKey {
  std::string_view name;  ///< in files: "ranks_per_node"
  KeyKind kind = KeyKind::word;
  Scope scope = Scope::both;
  std::string_view what = "";     ///< one line of help
  std::string_view builtin = "";  ///< the default value; empty: none
  std::string_view choices = "";  ///< for KeyKind::choice: "no fp16 bf16", in the order of the option's enumerators
  /// Words, each with the value that it stands for if no lower layer has one: "auto=1".
  std::string_view automatic = "";
  std::string_view accelerate = "";  ///< variables of Accelerate's launcher that count where the key's own is not set
  bool is_for_program = false;       ///< passed to the ranks by its variable
};

/// Returns "ranks-per-node" for the flag --ranks-per-node.
std::string flag_of(const SettingKey& key);
/// Returns "HORTATOR_RANKS_PER_NODE".
std::string variable_of(const SettingKey& key);

/// Returns the settings that reach the program.
std::span<const SettingKey> program_settings();
/// Returns the setting of this name, which must be one of program_settings().
const SettingKey& program_setting(std::string_view name);

/// Returns the whole number from `min` to 100 millions that a text is; nothing for any other text.
std::optional<int> parse_whole_number(const std::string& text, int min);
/// Returns the finite number from 0 that a text is; nothing for any other text.
std::optional<double> parse_amount(const std::string& text);
/// An interval in steps or in time; the other one is 0.
struct Interval {
  std::int64_t steps = 0;
  std::chrono::milliseconds time = {};

  friend bool operator==(const Interval&, const Interval&) = default;
};
/// Returns the interval that a text is: a whole number of steps from 1, or a time as units::parse_duration() reads it;
/// nothing for any other text.
std::optional<Interval> parse_interval(const std::string& text);
/// Returns the position of a text among the choices of a key; nothing for any other text.
std::optional<std::size_t> parse_choice(const SettingKey& key, const std::string& text);

/// Throws UsageError for a value that the key does not accept; `where` begins the message, and may be empty: "--ranks:
/// expected a whole number from 1, got 'abc'".
[[noreturn]] void throw_unexpected(const SettingKey& key, const std::string& value, std::string_view where);

/// Returns what a key's value must be: "a whole number from 1".
std::string expected(const SettingKey& key);

/// Read a variable as a key of the kind count, onoff, amount or interval; or of the kind choice, as a position among
/// its choices. Throw UsageError, which names the variable, for a value that is not valid.
int read_count(const SettingKey& key, const SetVariable& variable);
bool read_onoff(const SettingKey& key, const SetVariable& variable);
double read_amount(const SettingKey& key, const SetVariable& variable);
Interval read_interval(const SettingKey& key, const SetVariable& variable);
std::size_t read_choice(const SettingKey& key, const SetVariable& variable);

}  // namespace hortator::core
