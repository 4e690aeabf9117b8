#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// Small files that are read and written as a whole.
namespace hortator::core {

/// All bytes; nothing when the file cannot be opened or read, which may end between the two: a process's, a folder's.
std::optional<std::string> read_whole(const std::filesystem::path& file);
/// The same, and nothing for one that has more than `most` bytes.
std::optional<std::string> read_at_most(const std::filesystem::path& file, std::uint64_t most);

/// A reader sees the old file or the new one. The new one is written under the name `aside`, next to it. Their folder
/// is made if need be. False when that cannot be.
bool write_whole(const std::filesystem::path& file, const std::filesystem::path& aside, std::string_view content);

}  // namespace hortator::core
