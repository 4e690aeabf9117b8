#pragma once

#include <filesystem>
#include <vector>

#include "launch/settings/file.hpp"

namespace hortator::tools {

/// The keys of a YAML (or JSON) file, in order. Throws UsageError with the line number if the file is invalid or not a
/// map.
std::vector<launching::ConfigEntry> read_yaml(const std::filesystem::path& file);

}  // namespace hortator::tools
