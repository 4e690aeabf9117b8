#include "formats/safetensors/strict_json.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace hortator::formats {

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
  for (const char c : word) {
    if (index_ == text_.size()) fail("EOF while parsing a value");
    if (text_[index_++] != c) fail("expected ident");
  }
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

}  // namespace hortator::formats
