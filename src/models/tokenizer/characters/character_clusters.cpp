#include "models/tokenizer/characters/character_clusters.hpp"

#include <unicode/uchar.h>

#include "models/tokenizer/characters/later_characters.hpp"

namespace hortator::models {
namespace {

int break_class(char32_t c) {
  if (c >= ' ' && c < 0x7F) return U_GCB_OTHER;
  if (is_later_mark(c) || is_mark_of_unicode_17(c)) return U_GCB_EXTEND;
  return u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_GRAPHEME_CLUSTER_BREAK);
}

bool is_pictograph(char32_t c) {
  return c >= 0x80 && u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_EXTENDED_PICTOGRAPHIC) != 0;
}

bool is_control_class(int c) { return c == U_GCB_CONTROL || c == U_GCB_CR || c == U_GCB_LF; }

/// Whether Hangul syllables go on.
bool joins_hangul(int before, int after) {
  if (before == U_GCB_L) return after == U_GCB_L || after == U_GCB_V || after == U_GCB_LV || after == U_GCB_LVT;
  if (before == U_GCB_LV || before == U_GCB_V) return after == U_GCB_V || after == U_GCB_T;
  return (before == U_GCB_LVT || before == U_GCB_T) && after == U_GCB_T;
}

bool joins(int before, int after) {
  if (before == U_GCB_CR) return after == U_GCB_LF;
  if (is_control_class(before) || is_control_class(after)) return false;
  if (after == U_GCB_EXTEND || after == U_GCB_ZWJ || after == U_GCB_SPACING_MARK) return true;
  return before == U_GCB_PREPEND || joins_hangul(before, after);
}

}  // namespace

std::vector<TextRange> character_clusters(const std::u32string& text) {
  std::vector<TextRange> clusters;
  clusters.reserve(text.size());
  int before = U_GCB_CONTROL;
  bool follows_pictograph = false;  // and only what extends it is between
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto after = break_class(text[i]);
    const bool is_joined = before == U_GCB_ZWJ && follows_pictograph && is_pictograph(text[i]);
    if (i > 0 && (is_joined || joins(before, after))) {
      clusters.back().end = i + 1;
    } else {
      clusters.push_back({i, i + 1});
    }
    const bool extends = after == U_GCB_EXTEND || after == U_GCB_ZWJ;
    follows_pictograph = is_pictograph(text[i]) || (follows_pictograph && extends);
    before = after;
  }
  return clusters;
}

}  // namespace hortator::models
