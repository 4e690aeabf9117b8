#include "models/tokenizer/characters/unicode.hpp"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "models/tokenizer/characters/characters.hpp"

namespace hortator::models {
namespace {

UChar32 icu(char32_t c) { return static_cast<UChar32>(c); }

constexpr int version_of_normalization = 9;

/// Decodes one character and moves on; false for bytes that are not UTF-8 (RFC 3629).
bool next_code_point(std::string_view utf8, std::size_t& at, char32_t& character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(utf8[i]); };
  const auto lead = byte(at);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || at + length > utf8.size()) return false;
  constexpr std::array<unsigned, 5> payload = {0, 0x7F, 0x1F, 0x0F, 0x07};
  character = lead & payload[length];
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return false;
    character = (character << 6) | (byte(at + i) & 0x3F);
  }
  constexpr std::array<char32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = character >= 0xD800 && character < 0xE000;
  if (character < least[length] || is_surrogate || character > 0x10FFFF) return false;
  at += length;
  return true;
}

const UNormalizer2* normalizer(NormalizationForm form) {
  UErrorCode error = U_ZERO_ERROR;
  const bool is_canonical = form == NormalizationForm::nfc || form == NormalizationForm::nfd;
  const auto* found = is_canonical ? unorm2_getNFCInstance(&error) : unorm2_getNFKCInstance(&error);
  if (U_FAILURE(error)) throw Error({.what = text::concat("ICU has no data for normalisation: ", u_errorName(error))});
  return found;
}

std::uint8_t combining_class(char32_t c) {
  const bool is_known = c >= 0x80 && is_in_unicode(c, version_of_normalization);
  return is_known ? u_getCombiningClass(icu(c)) : std::uint8_t{0};
}

struct DecomposedCharacter {
  char32_t character;
  int change;
  std::uint8_t order;  ///< the canonical combining class
};

std::vector<DecomposedCharacter> decomposed(const std::u32string& text, const UNormalizer2* data) {
  std::vector<DecomposedCharacter> all;
  all.reserve(text.size());
  std::array<UChar, 64> parts{};
  for (const auto c : text) {
    UErrorCode error = U_ZERO_ERROR;
    const auto count =
        c < 0x80 || !is_in_unicode(c, version_of_normalization)
            ? -1
            : unorm2_getDecomposition(data, icu(c), parts.data(), static_cast<std::int32_t>(parts.size()), &error);
    if (count < 0 || U_FAILURE(error)) {
      all.push_back({c, 0, combining_class(c)});
      continue;
    }
    std::int32_t at = 0;
    for (bool is_first = true; at < count; is_first = false) {
      UChar32 part = 0;
      U16_NEXT(parts.data(), at, count, part);
      all.push_back({static_cast<char32_t>(part), is_first ? 0 : 1, combining_class(static_cast<char32_t>(part))});
    }
  }
  // canonical order: marks between two starters by their class
  for (auto begin = all.begin(); begin != all.end();) {
    if (begin->order == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, all.end(), [](const auto& one) { return one.order == 0; });
    std::stable_sort(begin, end, [](const auto& a, const auto& b) { return a.order < b.order; });
    begin = end;
  }
  return all;
}

/// Joins marks, and what else composes, with the last starter. A character that goes is removed after its starter.
std::vector<CharacterChange> composed(const std::vector<DecomposedCharacter>& parts, const UNormalizer2* data) {
  std::vector<CharacterChange> all;
  std::ptrdiff_t starter = -1;
  int last_order = -1;  // of the marks after the starter that stay; -1: none stays
  for (const auto& part : parts) {
    const bool is_blocked = last_order >= 0 && (last_order == 0 || last_order >= part.order);
    if (starter >= 0 && !is_blocked) {
      auto& first = all[static_cast<std::size_t>(starter)];
      const auto joined = unorm2_composePair(data, icu(first.character), icu(part.character));
      if (joined >= 0) {
        first = {static_cast<char32_t>(joined), first.change + part.change - 1};
        continue;
      }
    }
    all.push_back({part.character, part.change});
    if (part.order == 0) {
      starter = static_cast<std::ptrdiff_t>(all.size()) - 1;
      last_order = -1;
    } else {
      last_order = part.order;
    }
  }
  return all;
}

}  // namespace

std::u32string code_points(std::string_view utf8) {
  std::u32string all;
  all.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size();) {
    char32_t character = 0;
    if (!next_code_point(utf8, at, character)) {
      throw UsageError({.what = text::concat("The text is not valid UTF-8 at byte ", at),
                        .why = "tokens stand for characters",
                        .hint = "convert it to UTF-8, or remove these bytes"});
    }
    all.push_back(character);
  }
  return all;
}

void append_utf8(std::string& utf8, char32_t c) {
  const auto put = [&](char32_t byte) { utf8.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | (c >> 6));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

std::size_t utf8_size(std::u32string_view text) {
  std::size_t size = 0;
  for (const auto c : text) size += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  return size;
}

std::string to_utf8(std::u32string_view text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (const auto c : text) append_utf8(utf8, c);
  return utf8;
}

std::vector<CharacterChange> normalized(const std::u32string& text, NormalizationForm form) {
  const auto* data = normalizer(form);
  const auto parts = decomposed(text, data);
  if (form == NormalizationForm::nfc || form == NormalizationForm::nfkc)
    return composed(parts, normalizer(NormalizationForm::nfc));
  std::vector<CharacterChange> all;
  all.reserve(parts.size());
  for (const auto& part : parts) all.push_back({part.character, part.change});
  return all;
}

}  // namespace hortator::models
