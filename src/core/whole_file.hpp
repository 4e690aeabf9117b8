#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// Reading and writing small files as a whole.
namespace hortator::core {

/// All bytes; nothing when the file cannot be opened or read. (Files in /proc and folders may open and then fail to
/// read.)
std::optional<std::string> read_whole(const std::filesystem::path& file);
/// The same, but nothing for a file of more than `max` bytes.
std::optional<std::string> read_at_most(const std::filesystem::path& file, std::uint64_t max);

/// Replaces the file: a reader sees the old one or the new one. The new content is first written to `aside`, in the
/// same folder. Creates the folder if necessary. Returns false on failure.
bool write_whole(const std::filesystem::path& file, const std::filesystem::path& aside, std::string_view content);

}  // namespace hortator::core
