#pragma once

#include <hortator/error.hpp>
#include <string>
#include <vector>

#include "launch/settings/settings.hpp"

/// A parsed file of settings.
namespace hortator::launching {

enum class EntryShape { scalar, list, map };

/// One key with its value. Within a section of an Accelerate file the key is "fsdp_config.fsdp_version".
struct ConfigEntry {
  std::string key = "";
  int line = 0;
  EntryShape shape = EntryShape::scalar;
  std::vector<std::string> values = {};  ///< "name=value" each for a map; empty for null
  std::vector<int> lines = {};           ///< of the values of lists and maps

  int line_of(std::size_t value) const { return value < lines.size() ? lines[value] : line; }
};

/// Replaces each section of an Accelerate file by one entry per key. (The only maps in files of Hortator are
/// KeyKind::variables.)
std::vector<ConfigEntry> open_sections(const std::vector<ConfigEntry>& entries);

/// The settings of a Hortator file. Throws UsageError with file, line, key and, for an unknown key, the nearest one; if
/// several entries are wrong, with all of them, after `errors`: those that were found before.
Layer read_settings(const std::vector<ConfigEntry>& entries, const std::string& file,
                    std::vector<UsageError> errors = {});

/// Throws one error with the texts of all, unless there are none.
void throw_all(const std::vector<UsageError>& errors, const std::string& file);

}  // namespace hortator::launching
