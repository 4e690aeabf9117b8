#pragma once

#include <string>

/// Properties of characters, as Hugging Face tokenizers has them: each is of the version of Unicode that its tables are
/// of.
namespace hortator::models {

bool is_whitespace(char32_t c);
bool is_letter(char32_t c);           ///< \p{L} of Unicode 16
bool is_number(char32_t c);           ///< \p{N} of Unicode 16
bool is_numeral(char32_t c);          ///< \p{N} of Unicode 17
bool is_word(char32_t c);             ///< \w of Unicode 16
bool is_punctuation(char32_t c);      ///< \p{P} of Unicode 8
bool is_control(char32_t c);          ///< \p{Cc}, \p{Cf} and \p{Co} of Unicode 8
bool is_nonspacing_mark(char32_t c);  ///< \p{Mn} of Unicode 8
bool is_mark(char32_t c);             ///< \p{M} of Unicode 9
/// Lower case of one character, which may be several.
std::u32string lower_case(char32_t c);

/// Whether this version of Unicode, or an earlier one, has the character.
bool is_in_unicode(char32_t c, int version);

}  // namespace hortator::models
