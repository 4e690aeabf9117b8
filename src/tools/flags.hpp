#pragma once

#include <optional>
#include <set>
#include <string>

#include "launch/settings/settings.hpp"
#include "tools/command_line/options.hpp"

/// Flags that set settings, the same for every verb that has them.
namespace hortator::tools {

/// Flags to which a verb gives another meaning.
using OwnFlags = std::set<std::string>;

/// Adds --config-file and a flag for each key of `verb` that is not in `own`.
void add_setting_flags(Options& options, launching::Scope verb, const OwnFlags& own = {});

/// The settings that these flags give. Throws UsageError for an invalid value.
launching::Layer settings_from_flags(const boost::program_options::variables_map& values, launching::Scope verb,
                                     const OwnFlags& own = {});

/// The file that --config-file names, if it is given.
std::optional<std::string> config_file_of(const boost::program_options::variables_map& values);

/// The settings of the flags and of all layers below them.
launching::Settings settings_of(const boost::program_options::variables_map& values, launching::Scope verb);

}  // namespace hortator::tools
