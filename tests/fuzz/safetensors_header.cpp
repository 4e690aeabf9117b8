// Fuzzes the reader of safetensors headers: any bytes are accepted or rejected, without other effects.
#include "formats/safetensors/header.hpp"

#include <cstdint>
#include "target.hpp"

using namespace hortator::formats;

FUZZ_TARGET(safetensors_header) {
  // The first byte is the size of the data after the header.
  if (size == 0) return 0;
  const std::string_view header(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const auto parsed = parse_safetensors_header(header, 8 + header.size() + data[0]);
    for (const auto& entry : parsed.entries) {
      if (entry.end > data[0]) __builtin_trap();
    }
  } catch (const SafetensorsFault&) {
  }
  return 0;
}
