#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Spellings that users know from Slurm, PBS and mpirun. One table for the command line, the files, --help, the man
/// page and completion.
namespace hortator::launching {

/// Whose spelling it is. A short flag means what the scheduler or launcher at hand means by it.
enum class Dialect { any, slurm, pbs, mpi };

enum class Meaning {
  setting,      ///< sets the setting `text`
  directive,    ///< for a job, a line for Slurm: `text` and the value; for a launch, an option for srun
  pbs_line,     ///< for a job, a line for PBS: `text` and the value
  option,       ///< an option for the launcher: `text` and the value
  resources,    ///< PBS's -l
  gres,         ///< Slurm's --gres
  variables,    ///< PBS's -v
  mail_points,  ///< PBS's -m
  attributes,   ///< PBS's -W
  noted,        ///< accepted without effect; `text` is the reason
  refused,      ///< an error; `text` is the reason
};

enum class Takes { value, two_values, nothing, optional };

struct Synonym {
  std::string_view spelling;  ///< "--partition", "-p", "-np"
  Meaning meaning = Meaning::setting;
  std::string_view text = "";
  Dialect dialect = Dialect::any;
  Takes takes = Takes::value;
  std::string_view fixed = "";  ///< the value of a setting whose spelling has none; empty: "true"
  /// What a launch does with a setting that only jobs have: the option of srun with this meaning, "setting NAME", or
  /// "refused" because the launch would not do what was asked for. Empty: the spelling has no effect.
  std::string_view at_launch = "";
};

std::span<const Synonym> synonyms();

/// The synonym that `argument` begins with: "--partition=gpu", "-pgpu" and "-p" have one spelling each. If a spelling
/// has several meanings, the one in `dialect` counts. Null if there is none.
const Synonym* find_synonym(std::string_view argument, Dialect dialect);

/// The setting that a name in a file stands for: "partition" stands for "queue", Accelerate's "num_processes" for
/// "ranks". Empty if the name is no synonym.
std::string_view key_of_synonym(std::string_view name);

/// All such names.
std::vector<std::string> synonyms_in_files();

/// "Slurm", "PBS" or "mpirun".
std::string_view name_of(Dialect dialect);

/// Whether the dialect has a launcher's option of this name, which stands before '=' or a blank. Used to refuse an
/// option of mpirun where srun starts the ranks, and the reverse.
bool has_option(Dialect dialect, std::string_view option);

}  // namespace hortator::launching
