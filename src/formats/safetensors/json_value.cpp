#include "formats/safetensors/strict_json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

// With a point or an exponent, as short as possible.
std::string float_text(double value) {
  constexpr double min_plain = 1e-5;
  constexpr double min_scientific = 1e16;
  const auto size = std::abs(value);
  const bool plain = size == 0 || (size >= min_plain && size < min_scientific);
  std::array<char, 64> buffer{};
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
  std::string words(buffer.data(), result.ptr);
  if (plain) return words.find('.') == std::string::npos ? words + ".0" : words;
  // "1e-06" is written 1e-6, but 1e+16 as it is
  const auto exponent = words.find('e') + 2;
  return words.substr(0, exponent) + std::to_string(std::atoi(words.c_str() + exponent));
}

// A zero would end the message, and others might change what the terminal shows.
std::string printable(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte != 0x7f) return {c};
  if (byte == 0) return "\\0";
  std::array<char, 8> words{};
  std::snprintf(words.data(), words.size(), "\\u{%x}", unsigned{byte});
  return words.data();
}

std::string escaped(std::string_view words) {
  std::string out = "\"";
  for (const char c : words) {
    switch (c) {
      case '"':
      case '\\':
        out += {'\\', c};
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += printable(c);
    }
  }
  return out + "\"";
}

struct Describe {
  std::string operator()(std::nullptr_t) const { return "null"; }
  std::string operator()(bool value) const { return value ? "boolean `true`" : "boolean `false`"; }
  std::string operator()(std::uint64_t value) const { return text::concat("integer `", value, "`"); }
  std::string operator()(std::int64_t value) const { return text::concat("integer `", value, "`"); }
  std::string operator()(double value) const { return text::concat("floating point `", float_text(value), "`"); }
  std::string operator()(const std::string& value) const { return "string " + escaped(value); }
  std::string operator()(const JsonValue::Array&) const { return "sequence"; }
  std::string operator()(const JsonValue::Object&) const { return "map"; }
};

}  // namespace

std::string JsonValue::described() const { return std::visit(Describe{}, content); }

void JsonValue::refuse(std::string_view expected) const {
  throw JsonFault(text::concat("invalid type: ", described(), ", expected ", expected));
}

}  // namespace hortator::formats
