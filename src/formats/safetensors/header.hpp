#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors/entry.hpp"

namespace hortator::formats {

/// In front of the header: how long it is.
inline constexpr std::uint64_t safetensors_length_bytes = 8;

/// What a file says of itself before its data.
struct SafetensorsHeader {
  std::map<std::string, std::string> metadata = {};
  std::vector<SafetensorsEntry> entries = {};  ///< in the order of their bytes
  std::uint64_t data_offset = 0;               ///< in the file
};

/// Why a file is none of safetensors. The words are the reference's; where it names no tensor, the name follows.
class SafetensorsFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How long the header is, by the file's first eight bytes (`beginning` has fewer where the file has).
std::uint64_t safetensors_header_bytes(std::span<const std::byte> beginning, std::uint64_t file_bytes);

/// Checks all of it: the tensors' bytes fill the file, without holes and without overlap, and fit their shapes.
SafetensorsHeader parse_safetensors_header(std::string_view header, std::uint64_t file_bytes);

}  // namespace hortator::formats
