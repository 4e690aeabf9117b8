#pragma once

#include <filesystem>
#include <string_view>

namespace hortator::runtime {

/// Puts `content` and a newline into `file` as a whole: a reader sees the old file or the new one. It is written under
/// the name `aside`, next to it. Their folder is made if need be. False when that cannot be.
bool write_whole(const std::filesystem::path& file, const std::filesystem::path& aside, std::string_view content);

}  // namespace hortator::runtime
