// Numbers of JSON.
#include "formats/safetensors/strict_json.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace hortator::formats {
namespace {

template <typename Number>
bool parse_whole(const std::string& words, Number& number) {
  const auto* end = words.data() + words.size();
  const auto result = std::from_chars(words.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

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

}  // namespace hortator::formats
