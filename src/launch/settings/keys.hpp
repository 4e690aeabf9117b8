#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The settings: one table for the flags, the environment variables, the files and the help text.
namespace hortator::launching {

enum class KeyKind {
  count,      ///< a whole number from 1
  number,     ///< a whole number from 0
  amount,     ///< a number from 0, such as 0.5
  onoff,      ///< true or false, in any spelling that Accelerate accepts
  choice,     ///< one of Key::choices
  word,       ///< text
  time,       ///< "HH:MM:SS", as schedulers write it
  gpus,       ///< "4", "a100:4" or "a100:2,h100:2"
  memory,     ///< "64G"
  array,      ///< "0-3", "1,5" or "0-9%2"
  list,       ///< several texts; layers add up
  variables,  ///< NAME=value; layers add up, and for one name the higher layer wins
};

/// Which commands have the key's flag.
enum class Scope { launch, job, both };

/// A setting. Its flag and its variable are made of its name.
struct Key {
  std::string_view name;  ///< in files: "ranks_per_node"
  KeyKind kind = KeyKind::word;
  Scope scope = Scope::both;
  std::string_view what = "";     ///< one line of help
  std::string_view builtin = "";  ///< the default value; empty: none
  std::string_view choices = "";  ///< for KeyKind::choice: "no fp16 bf16"
  bool is_for_program = false;    ///< passed to the ranks by its variable
  /// Words, each with the value that it stands for if no lower layer has one: "auto=1".
  std::string_view automatic = "";
};

/// "ranks-per-node" for the flag --ranks-per-node.
std::string flag_of(const Key& key);
/// "HORTATOR_RANKS_PER_NODE".
std::string variable_of(const Key& key);

std::span<const Key> keys();

/// The value that the word stands for (Key::automatic); nothing if it is an ordinary value.
std::optional<std::string> automatic_value(const Key& key, std::string_view word);

/// Returns the key of that name, or of that synonym: "num_processes", "partition". Throws UsageError with the nearest
/// name for an unknown one; `where` begins the message: "file:3: ".
const Key& find_key(std::string_view name, const std::string& where);

/// Throws UsageError for values that the key does not accept; `where` begins the message and names the setting as the
/// user typed it: "--ranks: ". It may be empty.
void check_values(const Key& key, const std::vector<std::string>& values, const std::string& where);

}  // namespace hortator::launching
