#pragma once

#include <filesystem>
#include <hortator/error.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/settings/accelerate_file.hpp"
#include "launch/settings/file.hpp"
#include "launch/settings/settings.hpp"

namespace hortator::tools {

/// The keys of a YAML (or JSON) file, in order, and an error for each value that is not text, a list or a map of texts.
struct ParsedFile {
  std::vector<launching::ConfigEntry> entries = {};
  std::vector<UsageError> errors = {};
};

/// Parses a file. Throws UsageError with the line number if the file is invalid or not a map.
ParsedFile parse_yaml(const std::filesystem::path& file);

/// The keys of a file. Throws one UsageError with all errors in it.
std::vector<launching::ConfigEntry> read_yaml(const std::filesystem::path& file);

/// The user's settings file: $XDG_CONFIG_HOME/hortator/config.yaml, or below ~/.config.
std::filesystem::path user_file();

/// Accelerate's file, if the user has one.
std::optional<std::filesystem::path> accelerate_file();

/// Translates a file of Accelerate, and reads the DeepSpeed file that it names. What is unsupported becomes a refused
/// remark.
launching::AccelerateFile read_accelerate(const std::vector<launching::ConfigEntry>& entries,
                                          const std::filesystem::path& file);

/// Reads a settings file of Hortator or Accelerate. Throws UsageError if it is invalid or asks for something that
/// Hortator does not have.
launching::Layer read_file(const std::filesystem::path& file);

/// Merges all sources, highest priority first: `flags`, HORTATOR_* variables, --config-file (otherwise the project's
/// hortator.yaml, then the user's file; without both, Accelerate's), the site profile, the Slurm allocation.
launching::Settings gather_settings(const launching::Layer& flags, const std::optional<std::string>& config_file);

}  // namespace hortator::tools
