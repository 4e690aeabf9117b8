#pragma once

#include "cli/options.hpp"
#include "launch/settings.hpp"

/// The flags that stand for settings: the same for every verb that has them.
namespace hortator::cli {

/// Adds a flag for each key that `verb` has, and --config_file.
void add_setting_flags(Options& options, launch::Scope verb);

/// What was said by them. UsageError for a value that a key cannot have.
launch::Layer said_by_flags(const boost::program_options::variables_map& values, launch::Scope verb);

/// What was said, and everything below it.
launch::Settings settings_of(const boost::program_options::variables_map& values, launch::Scope verb);

}  // namespace hortator::cli
