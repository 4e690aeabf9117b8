#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What can be configured: one table for the flags, the variables, the files and their explanation.
namespace hortator::launching {

enum class Kind {
  count,      ///< a number from 1 on
  number,     ///< a number from 0 on
  onoff,      ///< true or false, in the words of the reference
  choice,     ///< one of Key::choices
  word,       ///< text
  time,       ///< "HH:MM:SS", as schedulers write it
  list,       ///< words, one after the other; layers add up
  variables,  ///< NAME=value; layers add up, and of two of a name the higher wins
};

/// Who has the key's flag.
enum class Scope { launch, job, both };

struct Key {
  std::string_view name;      ///< in files; the reference's where it means the same
  std::string_view flag;      ///< "ranks" for --ranks
  std::string_view variable;  ///< "HORTATOR_RANKS"
  Kind kind = Kind::word;
  Scope scope = Scope::both;
  std::string_view what = "";     ///< in a line
  std::string_view builtin = "";  ///< empty: there is none
  std::string_view choices = "";  ///< of Kind::choice: "no fp16 bf16"
  bool is_for_program = false;    ///< the ranks learn of it by its variable
};

std::span<const Key> keys();

/// UsageError that names the nearest one for a name that is none; `where` begins the message: "file:3: ".
const Key& find_key(std::string_view name, const std::string& where);

/// UsageError for words that the key cannot mean; `where` says who gave them.
void check_text(const Key& key, const std::vector<std::string>& words, const std::string& where);

}  // namespace hortator::launching
