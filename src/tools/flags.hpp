#pragma once

#include <set>
#include <string>

#include "launch/settings/settings.hpp"
#include "tools/options.hpp"

/// The flags that stand for settings: the same for every verb that has them.
namespace hortator::tools {

/// Flags that a verb gives another meaning.
using OwnFlags = std::set<std::string>;

/// Adds a flag for each key that `verb` has, but for its own, and --config_file.
void add_setting_flags(Options& options, launching::Scope verb, const OwnFlags& own = {});

/// What was said by them. UsageError for a value that a key cannot have.
launching::Layer said_by_flags(const boost::program_options::variables_map& values, launching::Scope verb,
                               const OwnFlags& own = {});

/// What was said, and everything below it.
launching::Settings settings_of(const boost::program_options::variables_map& values, launching::Scope verb);

}  // namespace hortator::tools
