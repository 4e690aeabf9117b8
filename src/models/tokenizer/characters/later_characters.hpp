#pragma once

/// Characters of Unicode 15.1 to 17, which releases of ICU before 74 to 78 do not know.
namespace hortator::models {

// Those that Unicode 15.1 and 16 added.
bool is_later_letter(char32_t c);
bool is_later_number(char32_t c);
bool is_later_mark(char32_t c);
// Those that Unicode 17 added.
bool is_number_of_unicode_17(char32_t c);
bool is_mark_of_unicode_17(char32_t c);

/// The lower case of a capital of Unicode 16 or 17, and any other character itself.
char32_t later_lower_case(char32_t c);

}  // namespace hortator::models
