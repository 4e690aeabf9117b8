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

/// The length of the header is stored in front of it, in this many bytes.
inline constexpr std::uint64_t safetensors_length_bytes = 8;

/// The name under which the header holds metadata instead of a tensor.
inline constexpr std::string_view safetensors_metadata_name = "__metadata__";

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata = {};
  std::vector<SafetensorsEntry> entries = {};  ///< in the order of their bytes
  std::uint64_t data_offset = 0;               ///< of the first tensor, in the file
};

/// Why a file is not a valid safetensors file. The caller adds the name of the file.
class SafetensorsFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns the length of the header from the file's first eight bytes (`beginning` is shorter if the file is). Throws
/// SafetensorsFault if the file cannot hold such a header.
std::uint64_t safetensors_header_bytes(std::span<const std::byte> beginning, std::uint64_t file_bytes);

/// Parses and checks the header of a file of `file_bytes` bytes: the tensors fill the data without holes or overlap,
/// and their bytes fit their shapes. It accepts what the safetensors library accepts. Throws SafetensorsFault, with the
/// tensor at fault.
SafetensorsHeader parse_safetensors_header(std::string_view header, std::uint64_t file_bytes);

}  // namespace hortator::formats
