#pragma once

#include <filesystem>
#include <vector>

#include "launch/settings/file.hpp"

namespace hortator::tools {

/// The keys of a YAML (or JSON) file, in their order. UsageError with the line for a file that is neither, or is not
/// a list of keys.
std::vector<launching::ConfigEntry> read_yaml(const std::filesystem::path& file);

}  // namespace hortator::tools
