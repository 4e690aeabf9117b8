#pragma once

#include <filesystem>
#include <string_view>

namespace hortator::tools {

/// Writes a file that the user asked for. Error, with the system's reason, where that cannot be.
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace hortator::tools
