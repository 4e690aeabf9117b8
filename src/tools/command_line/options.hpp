#pragma once

#include <boost/program_options.hpp>
#include <set>
#include <string>
#include <vector>

#include "launch/settings/synonyms.hpp"

namespace hortator::tools {

using Arguments = std::vector<std::string>;

/// The options of a verb.
struct Options {
  boost::program_options::options_description named = {};
  boost::program_options::positional_options_description positional = {};
  /// Everything from the first argument that is not an option on is text, options included: another program's command
  /// line.
  bool ends_at_text = false;
  /// Whether the verb has flags for settings: only then are the spellings of Slurm, PBS, mpirun and Accelerate
  /// understood.
  bool has_settings = false;
  bool is_launch = false;  ///< it starts ranks here, and asks for no job
  /// The scheduler or launcher at hand, for short flags; null: Slurm.
  launching::Dialect (*dialect)(const Arguments& arguments) = nullptr;
  std::set<std::string> own_flags = {};  ///< flags of settings to which the verb gives another meaning
};

/// The same options, with all other arguments stored under `name`.
Options with_text(Options options, const char* name);

/// "did you mean '--show'?" if `text` is the name of an option without its dashes; otherwise empty.
std::string hint_for_dashes(const std::string& text, const Options& options);

/// Parses the arguments. Throws UsageError with the nearest option for an unknown one.
boost::program_options::variables_map parse(const Arguments& arguments, const Options& options);

}  // namespace hortator::tools
