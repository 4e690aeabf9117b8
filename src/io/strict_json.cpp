#include "io/strict_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/text.hpp"

namespace hortator::io {
namespace {

// With a point or an exponent, as short as possible.
std::string float_text(double value) {
  constexpr double least_plain = 1e-5;
  constexpr double least_scientific = 1e16;
  const auto size = std::abs(value);
  const bool plain = size == 0 || (size >= least_plain && size < least_scientific);
  std::array<char, 64> buffer{};
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
  std::string words(buffer.data(), result.ptr);
  if (plain) return words.find('.') == std::string::npos ? words + ".0" : words;
  // "1e-06" is written 1e-6, but 1e+16 as it is
  const auto exponent = words.find('e') + 2;
  return words.substr(0, exponent) + std::to_string(std::atoi(words.c_str() + exponent));
}

std::string escaped(std::string_view words) {
  std::string out = "\"";
  for (const char letter : words) {
    switch (letter) {
      case '"':
      case '\\':
        out += {'\\', letter};
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
        out += letter;
    }
  }
  return out + "\"";
}

template <typename Number>
bool parse_whole(const std::string& words, Number& number) {
  const auto* end = words.data() + words.size();
  const auto result = std::from_chars(words.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
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

std::string JsonValue::described() const { return std::visit(Describe{}, content); }

void JsonValue::refuse(std::string_view expected) const {
  throw JsonFault(text::concat("invalid type: ", described(), ", expected ", expected));
}

std::string JsonScanner::place(std::size_t index) const {
  std::size_t line = 1;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < index; ++i) {
    if (text_[i] != '\n') continue;
    ++line;
    begin = i + 1;
  }
  return text::concat(" at line ", line, " column ", index - begin);
}

void JsonScanner::fail(std::string_view fault) const { throw JsonFault(std::string(fault) + place(index_)); }

// Of a character that was looked at and not read.
void JsonScanner::fail_at_next(std::string_view fault) const {
  throw JsonFault(std::string(fault) + place(std::min(index_ + 1, text_.size())));
}

bool JsonScanner::peek(char& next) {
  while (at(' ') || at('\n') || at('\t') || at('\r')) ++index_;
  if (index_ == text_.size()) return false;
  next = text_[index_];
  return true;
}

void JsonScanner::descend() {
  if (--depth_left_ == 0) fail_at_next("recursion limit exceeded");
  ++index_;
}

bool JsonScanner::at_null() {
  char next = 0;
  if (!peek(next) || next != 'n') return false;
  word("null");
  return true;
}

void JsonScanner::open_object(std::string_view expected) {
  char next = 0;
  if (!peek(next)) fail_at_next("EOF while parsing a value");
  if (next != '{') refuse_next(next, expected);
  descend();
}

// What opens something is refused before it is read, a plain value after that.
void JsonScanner::refuse_next(char next, std::string_view expected) {
  JsonValue found;
  if (next == '[') {
    found.content = JsonValue::Array{};
  } else if (next == '{') {
    found.content = JsonValue::Object{};
  } else {
    found = value();
  }
  fail(text::concat("invalid type: ", found.described(), ", expected ", expected));
}

bool JsonScanner::next_name(bool first, std::string& name) {
  char next = 0;
  if (!peek(next)) fail_at_next("EOF while parsing an object");
  if (next == '}') return false;
  if (!first) {
    if (next != ',') fail_at_next("expected `,` or `}`");
    ++index_;
    if (!peek(next)) fail_at_next("EOF while parsing a value");
    if (next == '}') fail_at_next("trailing comma");
  }
  if (next != '"') fail_at_next("key must be a string");
  ++index_;
  name = rest_of_string();
  return true;
}

void JsonScanner::colon() {
  char next = 0;
  if (!peek(next)) fail_at_next("EOF while parsing an object");
  if (next != ':') fail_at_next("expected `:`");
  ++index_;
}

void JsonScanner::close_object() {
  ++index_;
  ++depth_left_;
}

std::string JsonScanner::string(std::string_view expected) {
  char next = 0;
  if (!peek(next)) fail_at_next("EOF while parsing a value");
  if (next != '"') refuse_next(next, expected);
  ++index_;
  return rest_of_string();
}

void JsonScanner::end() {
  char next = 0;
  if (peek(next)) fail_at_next("trailing characters");
}

JsonValue JsonScanner::value() {
  char next = 0;
  if (!peek(next)) fail_at_next("EOF while parsing a value");
  switch (next) {
    case 'n':
      word("null");
      return {nullptr};
    case 't':
      word("true");
      return {true};
    case 'f':
      word("false");
      return {false};
    case '"':
      ++index_;
      return {rest_of_string()};
    case '[':
      return array();
    case '{':
      return object();
    default:
      if (next != '-' && !at_digit()) fail_at_next("expected value");
      return number();
  }
}

// Its first letter has been seen.
void JsonScanner::word(std::string_view word) {
  for (const char letter : word) {
    if (index_ == text_.size()) fail("EOF while parsing a value");
    if (text_[index_++] != letter) fail("expected ident");
  }
}

void JsonScanner::digits() {
  if (index_ == text_.size()) fail("EOF while parsing a value");
  if (!at_digit()) fail_at_next("invalid number");
  while (at_digit()) ++index_;
}

JsonValue JsonScanner::number() {
  const auto begin = index_;
  if (at('-')) ++index_;
  if (index_ == text_.size()) fail("EOF while parsing a value");
  const bool zero = at('0');
  if (!at_digit()) {
    ++index_;
    fail("invalid number");
  }
  ++index_;
  if (zero && at_digit()) fail_at_next("invalid number");
  while (at_digit()) ++index_;
  bool whole = true;
  if (at('.')) {
    whole = false;
    ++index_;
    digits();
  }
  if (at('e') || at('E')) {
    whole = false;
    ++index_;
    if (at('+') || at('-')) ++index_;
    if (index_ == text_.size()) fail("EOF while parsing a value");
    if (!at_digit()) {
      ++index_;
      fail("invalid number");
    }
    digits();
  }
  const std::string words(text_.substr(begin, index_ - begin));
  std::uint64_t natural = 0;
  std::int64_t integer = 0;
  if (whole && parse_whole(words, natural)) return {natural};
  if (whole && parse_whole(words, integer) && integer != 0) return {integer};  // -0 is a float
  const double value = std::strtod(words.c_str(), nullptr);
  if (std::isinf(value)) fail("number out of range");
  return {value};
}

char JsonScanner::next_of_string() {
  if (index_ == text_.size()) fail("EOF while parsing a string");
  return text_[index_++];
}

std::string JsonScanner::rest_of_string() {
  std::string out;
  while (true) {
    const char letter = next_of_string();
    if (letter == '"') return out;
    if (letter == '\\') {
      escape(out);
    } else if (static_cast<unsigned char>(letter) < 0x20) {
      fail("control character (\\u0000-\\u001F) found while parsing a string");
    } else {
      out += letter;
    }
  }
}

void JsonScanner::escape(std::string& out) {
  constexpr std::string_view letters = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  const char letter = next_of_string();
  const auto known = letters.find(letter);
  if (known != std::string_view::npos) {
    out += meanings[known];
  } else if (letter == 'u') {
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

bool JsonScanner::next_element(bool first) {
  char next = 0;
  if (!peek(next)) fail_at_next("EOF while parsing a list");
  if (next == ']') return false;
  if (first) return true;
  if (next != ',') fail_at_next("expected `,` or `]`");
  ++index_;
  if (!peek(next)) fail_at_next("EOF while parsing a value");
  if (next == ']') fail_at_next("trailing comma");
  return true;
}

JsonValue JsonScanner::array() {
  descend();
  JsonValue::Array elements;
  while (next_element(elements.empty())) elements.push_back(value());
  ++index_;
  ++depth_left_;
  return {std::move(elements)};
}

JsonValue JsonScanner::object() {
  descend();
  JsonValue::Object members;
  std::string name;
  while (next_name(members.empty(), name)) {
    colon();
    members.emplace_back(name, value());
  }
  close_object();
  return {std::move(members)};
}

}  // namespace hortator::io
