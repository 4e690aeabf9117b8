#include "models/tokenizer/regex/notation.hpp"

#include <cstdio>

namespace hortator::models {

std::string icu_character(char32_t c) {
  const bool is_plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  if (is_plain) return {static_cast<char>(c)};
  char text[16];
  std::snprintf(text, sizeof text, "\\x{%X}", static_cast<unsigned>(c));
  return text;
}

std::string icu_range(char32_t first, char32_t last) {
  return first == last ? icu_character(first) : icu_character(first) + "-" + icu_character(last);
}

}  // namespace hortator::models
