#include "models/tokenizer/regex/letter_case.hpp"

#include <unicode/uchar.h>
#include <unicode/uset.h>
#include <unicode/ustring.h>

#include <array>
#include <memory>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "models/tokenizer/regex/notation.hpp"

namespace hortator::models {
namespace {

/// All pairs of letters that are in the case folding of one character.
std::set<std::pair<char32_t, char32_t>> pairs_of_one_character() {
  constexpr std::pair<UChar32, UChar32> places[] = {{0xDF, 0x1FFF}, {0xFB00, 0xFB17}};  // of all that fold to several
  std::set<std::pair<char32_t, char32_t>> pairs;
  for (const auto& [first, last] : places) {
    for (auto c = first; c <= last; ++c) {
      const auto unit = static_cast<UChar>(c);
      std::array<UChar, 8> folded{};  // none is outside of the first plane
      UErrorCode error = U_ZERO_ERROR;
      const auto size =
          u_strFoldCase(folded.data(), static_cast<std::int32_t>(folded.size()), &unit, 1, U_FOLD_CASE_DEFAULT, &error);
      for (std::int32_t i = 1; U_SUCCESS(error) && i < size; ++i)
        pairs.emplace(folded[static_cast<std::size_t>(i) - 1], folded[static_cast<std::size_t>(i)]);
    }
  }
  return pairs;
}

}  // namespace

std::optional<std::string> with_both_cases(const std::string& set) {
  const std::u16string pattern(set.begin(), set.end());  // ASCII
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<USet, void (*)(USet*)> characters(
      uset_openPattern(pattern.data(), static_cast<std::int32_t>(pattern.size()), &error), uset_close);
  if (U_FAILURE(error)) return {};
  uset_closeOver(characters.get(), USET_CASE_INSENSITIVE);
  std::string all = "[";
  for (std::int32_t i = 0; i < uset_getItemCount(characters.get()); ++i) {
    UChar32 first = 0, last = 0;
    const auto length = uset_getItem(characters.get(), i, &first, &last, nullptr, 0, &error);
    if (length >= 2) return {};  // a string
    all += icu_range(static_cast<char32_t>(first), static_cast<char32_t>(last));
  }
  return all == "[" ? std::string(no_character) : all + "]";
}

bool may_be_one_character(char32_t first, char32_t second) {
  static const auto pairs = pairs_of_one_character();
  const auto folded = [](char32_t c) {
    return static_cast<char32_t>(u_foldCase(static_cast<UChar32>(c), U_FOLD_CASE_DEFAULT));
  };
  return pairs.contains({folded(first), folded(second)});
}

}  // namespace hortator::models
