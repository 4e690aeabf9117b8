#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/file.hpp"
#include "launch/settings/settings.hpp"

namespace hortator::tools {

/// The text of a settings file with these answers. Changes only the lines of keys whose value differs, keeps their
/// comments, and adds missing keys at the end: all other lines stay as they are. Throws UsageError where a key does not
/// begin a line of its own, as in JSON.
std::string updated_text(std::string_view text, const std::vector<launching::ConfigEntry>& entries,
                         const launching::Layer& answers, const std::string& file);

}  // namespace hortator::tools
