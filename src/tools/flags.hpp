#pragma once

#include <set>
#include <string>

#include "tools/options.hpp"
#include "launch/settings/settings.hpp"

/// The flags that stand for settings: the same for every verb that has them.
namespace hortator::tools {

/// Flags that a verb gives another meaning.
using OwnFlags = std::set<std::string>;

/// Adds a flag for each key that `verb` has, but for its own, and --config_file.
void add_setting_flags(Options& options, launch::Scope verb, const OwnFlags& own = {});

/// What was said by them. UsageError for a value that a key cannot have.
launch::Layer said_by_flags(const boost::program_options::variables_map& values, launch::Scope verb,
                               const OwnFlags& own = {});

/// What was said, and everything below it.
launch::Settings settings_of(const boost::program_options::variables_map& values, launch::Scope verb);

}  // namespace hortator::tools
