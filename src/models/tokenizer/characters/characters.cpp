#include "models/tokenizer/characters/characters.hpp"

#include <unicode/uchar.h>

#include <cstdint>

#include "models/tokenizer/characters/later_characters.hpp"

namespace hortator::models {
namespace {

constexpr int version_of_expressions = 16, version_of_categories = 8, version_of_marks = 9;

UChar32 code_point(char32_t c) { return static_cast<UChar32>(c); }

bool has_category(char32_t c, std::uint32_t mask) { return (U_MASK(u_charType(code_point(c))) & mask) != 0; }

bool is_later(char32_t c) { return !is_in_unicode(c, version_of_expressions); }

}  // namespace

bool is_in_unicode(char32_t c, int version) {
  UVersionInfo since{};
  u_charAge(code_point(c), since);
  return since[0] > 0 && since[0] <= version;
}

bool is_whitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return u_isUWhiteSpace(code_point(c)) != 0;
}

bool is_letter(char32_t c) {
  if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  return (has_category(c, U_GC_L_MASK) && !is_later(c)) || is_later_letter(c);
}

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return (has_category(c, U_GC_N_MASK) && !is_later(c)) || is_later_number(c);
}

bool is_numeral(char32_t c) { return is_number(c) || is_number_of_unicode_17(c); }

bool is_word(char32_t c) {
  constexpr char32_t joiners[] = {0x200C, 0x200D};
  if (c < 0x80) return c == '_' || is_letter(c) || is_number(c);
  if (c == joiners[0] || c == joiners[1]) return true;
  const bool is_known =
      u_isUAlphabetic(code_point(c)) != 0 || has_category(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK);
  return (is_known && !is_later(c)) || is_later_letter(c) || is_later_number(c) || is_later_mark(c);
}

bool is_punctuation(char32_t c) {
  if (c == 0x166D || c == 0x111C9) return true;  // in later versions of Unicode they are not
  return has_category(c, U_GC_P_MASK) && is_in_unicode(c, version_of_categories);
}

bool is_control(char32_t c) {
  return has_category(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) && is_in_unicode(c, version_of_categories);
}

bool is_nonspacing_mark(char32_t c) {
  // in later versions of Unicode one of these is not, and the others are
  if (c == 0x1734) return true;
  if (c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9) return false;
  return c >= 0x80 && has_category(c, U_GC_MN_MASK) && is_in_unicode(c, version_of_categories);
}

bool is_mark(char32_t c) {
  if (c < 0x80 || c == 0x111C9) return false;
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // in later versions of Unicode they are not
  return has_category(c, U_GC_M_MASK) && is_in_unicode(c, version_of_marks);
}

std::u32string lower_case(char32_t c) {
  if (c < 0x80) return {c >= 'A' && c <= 'Z' ? c + 32 : c};
  if (c == 0x130) return {U'i', 0x307};  // the only one that becomes two
  return {later_lower_case(static_cast<char32_t>(u_tolower(code_point(c))))};
}

}  // namespace hortator::models
