#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// Texts that somebody else may have written, or that are damaged: never larger or deeper than they can mean something.
namespace hortator::base {

constexpr std::uint64_t most_record_bytes = std::uint64_t{1} << 24;  ///< of what runs and people write down
constexpr int most_record_levels = 64;

/// The whole of a file; nothing for one that cannot be read, or has more than `most` bytes.
std::optional<std::string> read_at_most(const std::filesystem::path& file, std::uint64_t most = most_record_bytes);

/// Whether no value of a JSON text is within more than `levels` others. Looks at brackets alone: the text need not be
/// JSON.
bool is_shallow(std::string_view json, int levels = most_record_levels);

}  // namespace hortator::base
