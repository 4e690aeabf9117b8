// Strings of JSON, and what stands in them for other letters.
#include "formats/safetensors/strict_json.hpp"

#include <charconv>

namespace hortator::formats {
namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

bool is_leading_surrogate(std::uint32_t code) { return code >= 0xd800 && code <= 0xdbff; }
bool is_trailing_surrogate(std::uint32_t code) { return code >= 0xdc00 && code <= 0xdfff; }

}  // namespace

char JsonScanner::next_of_string() {
  if (index_ == text_.size()) fail("EOF while parsing a string");
  return text_[index_++];
}

std::string JsonScanner::rest_of_string() {
  std::string out;
  while (true) {
    const char c = next_of_string();
    if (c == '"') return out;
    if (c == '\\') {
      escape(out);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fail("control character (\\u0000-\\u001F) found while parsing a string");
    } else {
      out += c;
    }
  }
}

void JsonScanner::escape(std::string& out) {
  constexpr std::string_view characters = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  const char c = next_of_string();
  const auto known = characters.find(c);
  if (known != std::string_view::npos) {
    out += meanings[known];
  } else if (c == 'u') {
    unicode_escape(out);
  } else {
    fail("invalid escape");
  }
}

std::uint32_t JsonScanner::four_hex_digits() {
  if (text_.size() - index_ < 4) {
    index_ = text_.size();
    fail("EOF while parsing a string");
  }
  const auto* first = text_.data() + index_;
  index_ += 4;
  std::uint32_t code = 0;
  if (std::from_chars(first, first + 4, code, 16).ptr != first + 4) fail("invalid escape");
  return code;
}

void JsonScanner::unicode_escape(std::string& out) {
  auto code = four_hex_digits();
  if (is_trailing_surrogate(code)) fail("lone leading surrogate in hex escape");
  if (is_leading_surrogate(code)) {
    if (next_of_string() != '\\') fail("unexpected end of hex escape");
    if (next_of_string() != 'u') fail("unexpected end of hex escape");
    const auto second = four_hex_digits();
    if (!is_trailing_surrogate(second)) fail("lone leading surrogate in hex escape");
    code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
  }
  append_utf8(out, code);
}

}  // namespace hortator::formats
