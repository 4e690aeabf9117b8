#pragma once

#include <span>
#include <string_view>

/// Spellings that users know from Slurm and mpirun. One table for the command line, --help and completion.
namespace hortator::launching {

struct Synonym {
  std::string_view spelling;        ///< "--partition", "-p", "-np"
  std::string_view key = "";        ///< the setting with the same meaning; empty: `directive` goes to Slurm instead
  std::string_view directive = "";  ///< a line for the job; ends with '=' if the option has a value
};

std::span<const Synonym> synonyms();

/// The synonym that `argument` begins with: "--partition=gpu", "-pgpu" and "-p" have one spelling each. Null if there
/// is none.
const Synonym* find_synonym(std::string_view argument);

}  // namespace hortator::launching
