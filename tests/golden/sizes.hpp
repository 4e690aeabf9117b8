#pragma once

#include <algorithm>
#include <string_view>

namespace hortator::golden {

constexpr std::string_view blanks = " \t\n\r\v\f";

/// Returns the rule by which Hortator rejects a size that Accelerate accepts; null: none.
inline const char* rule_that_refuses(std::string_view size) {
  const auto written = size.substr(0, size.find_last_not_of(blanks) + 1);
  const auto unit = written.substr(written.find_last_of("0123456789. \t\n\r\v\f") + 1);
  const bool may_be_bits = unit.size() == 2 && std::string_view("kKmMgGtT").find(unit[0]) != std::string_view::npos;
  if (may_be_bits && unit[1] == 'b') return "bits_or_bytes_is_asked";
  if (size.find('_') != std::string_view::npos) return "digits_have_no_underscores";
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  return std::all_of(size.begin(), size.end(), is_ascii) ? nullptr : "digits_are_those_of_ascii";
}

}  // namespace hortator::golden
