#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors/strict_json.hpp"

namespace hortator::formats {

/// An element type of the format.
struct SafetensorsType {
  std::string_view name;
  std::uint64_t bits;   ///< of an element
  at::ScalarType type;  ///< Undefined if LibTorch has no such type
};

/// Returns the format's type of `type`, null if it has none. Pointers compare in the order in which the safetensors
/// library sorts types: larger elements are greater.
const SafetensorsType* safetensors_type(at::ScalarType type);

struct SafetensorsEntry {
  std::string name = {};
  const SafetensorsType* type = nullptr;
  std::vector<std::uint64_t> shape = {};
  std::uint64_t begin = 0;  ///< of its bytes, from the end of the header
  std::uint64_t end = 0;
};

/// Reads the header's value of one tensor; the name stays empty. Throws JsonFault.
SafetensorsEntry safetensors_entry(const JsonValue& value);

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
