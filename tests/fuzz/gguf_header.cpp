// Fuzzes the reader of GGUF headers: any bytes are accepted or rejected, with little memory and without other effects.
#include "formats/gguf/header.hpp"

#include <cstdint>
#include <cstring>
#include "target.hpp"

using namespace hortator::formats;

FUZZ_TARGET(gguf_header) {
  // The first byte is the size of the data after the header, in units of 32 bytes.
  if (size == 0) return 0;
  const auto* beginning = data + 1;
  const auto known = size - 1;
  const auto file_bytes = known + 32 * std::size_t{data[0]};
  const auto read = [&](std::uint64_t offset, void* to, std::size_t bytes) {
    if (offset > file_bytes || bytes > file_bytes - offset) __builtin_trap();
    std::memset(to, 0, bytes);
    if (offset < known) std::memcpy(to, beginning + offset, bytes < known - offset ? bytes : known - offset);
  };
  try {
    const auto parsed = parse_gguf_header(read, file_bytes);
    for (const auto& tensor : parsed.tensors) {
      if (tensor.offset > file_bytes) __builtin_trap();
    }
  } catch (const GgufFault&) {
  }
  return 0;
}
