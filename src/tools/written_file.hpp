#pragma once

#include <filesystem>
#include <string_view>

namespace hortator::tools {

/// Writes a file that the user asked for. Throws Error with the system's reason on failure.
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace hortator::tools
