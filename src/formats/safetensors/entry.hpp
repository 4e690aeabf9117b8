#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors/strict_json.hpp"

namespace hortator::formats {

/// What a file of safetensors calls the type of a tensor's elements.
struct SafetensorsType {
  std::string_view name;
  std::uint64_t bits;   ///< of an element
  at::ScalarType type;  ///< undefined: no tensor has it
};

/// Of tensors with such elements; null where the format has no name for them. Those of larger elements, and among
/// equal ones those that the format's library puts first, are greater.
const SafetensorsType* safetensors_type(at::ScalarType type);

struct SafetensorsEntry {
  std::string name = {};
  const SafetensorsType* type = nullptr;
  std::vector<std::uint64_t> shape = {};
  std::uint64_t begin = 0;  ///< of its bytes, counted from the header's end
  std::uint64_t end = 0;
};

/// What the header says of a tensor, but for its name. Throws a JsonFault in the reference's words.
SafetensorsEntry safetensors_entry(const JsonValue& value);

}  // namespace hortator::formats
