#include "models/tokenizer/characters/later_characters.hpp"

#include <algorithm>
#include <iterator>

namespace hortator::models {
namespace {

struct CharacterRange {
  char32_t first, last;
};

constexpr CharacterRange later_letters[] = {
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D4A, 0x10D65},
    {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x11380, 0x11389}, {0x1138B, 0x1138B}, {0x1138E, 0x1138E},
    {0x11390, 0x113B5}, {0x113B7, 0x113B7}, {0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0},
    {0x13460, 0x143FA}, {0x16100, 0x1611D}, {0x16D40, 0x16D6C}, {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED},
    {0x1E5F0, 0x1E5F0}, {0x2EBF0, 0x2EE5D}};

constexpr CharacterRange later_numbers[] = {{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9},
                                            {0x16130, 0x16139}, {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9},
                                            {0x1E5F1, 0x1E5FA}};

constexpr CharacterRange numbers_of_17[] = {{0x11DE0, 0x11DE9}, {0x16FF4, 0x16FF6}};

constexpr CharacterRange later_marks[] = {
    {0x897, 0x897},     {0x10D69, 0x10D6D}, {0x10EFC, 0x10EFC}, {0x113B8, 0x113C0}, {0x113C2, 0x113C2},
    {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0}, {0x113D2, 0x113D2}, {0x113E1, 0x113E2},
    {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F}, {0x1E5EE, 0x1E5EF}};

constexpr CharacterRange marks_of_17[] = {{0x1ACF, 0x1ADD},   {0x1AE0, 0x1AEB},   {0x10EFA, 0x10EFB},
                                          {0x11B60, 0x11B67}, {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6},
                                          {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5}};

/// Capital letters in a row, and the lower case of the first.
struct CapitalRange {
  char32_t first, last, lower;
};
constexpr CapitalRange later_capitals[] = {
    {0x1C89, 0x1C89, 0x1C8A},    {0xA7CB, 0xA7CB, 0x264},    {0xA7CC, 0xA7CC, 0xA7CD}, {0xA7CE, 0xA7CE, 0xA7CF},
    {0xA7D2, 0xA7D2, 0xA7D3},    {0xA7D4, 0xA7D4, 0xA7D5},   {0xA7DA, 0xA7DA, 0xA7DB}, {0xA7DC, 0xA7DC, 0x19B},
    {0x10D50, 0x10D65, 0x10D70}, {0x16EA0, 0x16EB8, 0x16EBB}};

/// The range that holds the character. Ranges are in order.
template <typename Range, std::size_t count>
const Range* range_of(const Range (&ranges)[count], char32_t c) {
  const auto* after = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                       [](char32_t at, const Range& one) { return at < one.first; });
  return after != std::begin(ranges) && c <= std::prev(after)->last ? std::prev(after) : nullptr;
}

}  // namespace

bool is_later_letter(char32_t c) { return range_of(later_letters, c) != nullptr; }
bool is_later_number(char32_t c) { return range_of(later_numbers, c) != nullptr; }
bool is_later_mark(char32_t c) { return range_of(later_marks, c) != nullptr; }
bool is_number_of_unicode_17(char32_t c) { return range_of(numbers_of_17, c) != nullptr; }
bool is_mark_of_unicode_17(char32_t c) { return range_of(marks_of_17, c) != nullptr; }

char32_t later_lower_case(char32_t c) {
  const auto* range = range_of(later_capitals, c);
  return range == nullptr ? c : range->lower + (c - range->first);
}

}  // namespace hortator::models
