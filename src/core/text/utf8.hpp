#pragma once

namespace hortator::text {

/// Whether a byte of UTF-8 is one of a character's bytes after the first.
constexpr bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace hortator::text
