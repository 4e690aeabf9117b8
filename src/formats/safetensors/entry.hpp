#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
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

}  // namespace hortator::formats
