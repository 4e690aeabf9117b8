#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/settings/accelerate_names.hpp"
#include "launch/settings/settings.hpp"

/// Where settings come from on this machine.
namespace hortator::tools {

/// The user's own file of settings: $XDG_CONFIG_HOME/hortator/config.yaml, or below ~/.config.
std::filesystem::path user_file();

/// Accelerate's file, if the user has one.
std::optional<std::filesystem::path> accelerate_file();

/// One file of settings, ours or Accelerate's. UsageError for what is wrong or cannot be had.
launching::Layer read_file(const std::filesystem::path& file);

/// Flags, variables and files as they outrank each other: `flags`, HORTATOR_*, then --config_file or else the project's
/// hortator.yaml, the user's file and (where there is neither) Accelerate's, then the site's, then what Slurm says of
/// the allocation.
launching::Settings gather_settings(const launching::Layer& flags, const std::optional<std::string>& config_file);

}  // namespace hortator::tools
