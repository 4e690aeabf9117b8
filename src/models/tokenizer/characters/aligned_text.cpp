#include "models/tokenizer/characters/aligned_text.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "models/tokenizer/characters/unicode.hpp"

namespace hortator::models {

AlignedText::AlignedText(const std::u32string& text) : text_(text) {
  ranges_.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) ranges_.push_back({i, i + 1});
}

TextRange AlignedText::original(const TextRange& range) const {
  if (ranges_.empty()) return {};
  if (range.size() == 0) {
    const auto at = range.begin < ranges_.size() ? ranges_[range.begin].begin : ranges_.back().end;
    return {at, at};
  }
  return {ranges_[range.begin].begin, ranges_[range.end - 1].end};
}

AlignedText AlignedText::slice(const TextRange& range) const {
  AlignedText part;
  part.text_ = text_.substr(range.begin, range.size());
  part.ranges_.assign(ranges_.begin() + static_cast<std::ptrdiff_t>(range.begin),
                      ranges_.begin() + static_cast<std::ptrdiff_t>(range.end));
  return part;
}

void AlignedText::transform(const std::vector<CharacterChange>& characters) {
  std::u32string text;
  std::vector<TextRange> ranges;
  text.reserve(characters.size());
  ranges.reserve(characters.size());
  std::size_t at = 0;
  for (const auto& [character, change] : characters) {
    text.push_back(character);
    if (change > 0) {
      ranges.push_back(at > 0 ? ranges_[at - 1] : TextRange{});
      continue;
    }
    ranges.push_back(ranges_[at]);
    at += 1 + static_cast<std::size_t>(-change);
  }
  text_ = std::move(text);
  ranges_ = std::move(ranges);
  require_bounded();
}

void AlignedText::keep_if(const std::function<bool(char32_t)>& keeps) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (!keeps(text_[i])) continue;
    text_[kept] = text_[i];
    ranges_[kept++] = ranges_[i];
  }
  text_.resize(kept);
  ranges_.resize(kept);
}

void AlignedText::map(const std::function<char32_t(char32_t)>& change) {
  for (auto& character : text_) character = change(character);
}

void AlignedText::prepend(std::u32string_view added) {
  if (text_.empty()) return;
  text_.insert(0, added);
  ranges_.insert(ranges_.begin(), added.size(), TextRange(ranges_.front()));
  require_bounded();
}

void AlignedText::append(std::u32string_view added) {
  if (text_.empty()) return;
  text_.append(added);
  ranges_.insert(ranges_.end(), added.size(), TextRange(ranges_.back()));
}

void AlignedText::require_bounded() const {
  constexpr std::size_t max_growth = 64, always_allowed = std::size_t{1} << 20;
  if (text_.size() <= always_allowed) return;
  const auto original = ranges_.back().end - ranges_.front().begin;
  if (text_.size() <= max_growth * original) return;
  throw UsageError({.what = text::concat("The tokenizer makes ", text_.size(), " characters of ", original),
                    .why = "its normalizer or pre-tokenizer lets texts grow without bound",
                    .hint = "use another tokenizer.json"});
}

void AlignedText::strip(bool left, bool right) {
  std::size_t begin = 0, end = text_.size();
  while (left && begin < end && is_whitespace(text_[begin])) ++begin;
  while (right && end > begin && is_whitespace(text_[end - 1])) --end;
  *this = slice({begin, end});
}

/// The original range of the character before a place; an empty one before the first character.
TextRange AlignedText::range_before(std::size_t place) const {
  if (place > 0) return ranges_[place - 1];
  return ranges_.empty() ? TextRange{} : TextRange{ranges_.front().begin, ranges_.front().begin};
}

void AlignedText::replace(const std::vector<TextRange>& ranges, std::u32string_view by) {
  AlignedText changed;
  std::size_t at = 0;
  const auto keep_until = [&](std::size_t end) {
    changed.text_.append(text_, at, end - at);
    changed.ranges_.insert(changed.ranges_.end(), ranges_.begin() + static_cast<std::ptrdiff_t>(at),
                           ranges_.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (const auto& range : ranges) {
    keep_until(range.begin);
    changed.text_.append(by);
    changed.ranges_.insert(changed.ranges_.end(), by.size(), range_before(range.end));
    at = range.end;
  }
  keep_until(text_.size());
  *this = std::move(changed);
  require_bounded();
}

}  // namespace hortator::models
