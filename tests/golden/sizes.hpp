#pragma once

#include <algorithm>
#include <string_view>

namespace hortator::golden {

constexpr std::string_view blanks = " \t\n\r\v\f";

/// By which rule a size is refused that the reference takes; null: by none.
inline const char* rule_that_refuses(std::string_view words) {
  const auto written = words.substr(0, words.find_last_not_of(blanks) + 1);
  const auto unit = written.substr(written.find_last_of("0123456789. \t\n\r\v\f") + 1);
  const bool may_be_bits = unit.size() == 2 && std::string_view("kKmMgGtT").find(unit[0]) != std::string_view::npos;
  if (may_be_bits && unit[1] == 'b') return "bits_or_bytes_is_asked";
  if (words.find('_') != std::string_view::npos) return "digits_have_no_underscores";
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  return std::all_of(words.begin(), words.end(), is_ascii) ? nullptr : "digits_are_those_of_ascii";
}

}  // namespace hortator::golden
