#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::models {

/// Offsets in code points: the first, and the one after the last.
struct TextRange {
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
  friend bool operator==(const TextRange&, const TextRange&) = default;
};

/// A character of a changed text. `change` is 0 where it replaces one character, 1 where it is inserted, and -n where n
/// further ones that follow are removed.
struct CharacterChange {
  char32_t character = 0;
  int change = 0;
};

/// A text that is being changed, and the range of the original text that each of its characters stands for. Changes
/// that make it many times longer are errors: a hostile file could let them fill the memory.
class AlignedText {
 public:
  AlignedText() = default;
  explicit AlignedText(const std::u32string& text);

  const std::u32string& text() const { return text_; }
  std::size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }

  /// The original range of a range of characters.
  TextRange original(const TextRange& range) const;
  AlignedText slice(const TextRange& range) const;

  /// Replaces the text.
  void transform(const std::vector<CharacterChange>& characters);
  void keep_if(const std::function<bool(char32_t)>& keeps);
  void map(const std::function<char32_t(char32_t)>& change);
  /// Inserted characters share the range of their neighbour.
  void prepend(std::u32string_view added);
  void append(std::u32string_view added);
  void strip(bool left, bool right);
  /// Replaces each range, in order and not overlapping. What is inserted stands for the last character replaced, or for
  /// the one before an empty range.
  void replace(const std::vector<TextRange>& ranges, std::u32string_view by);

 private:
  void require_bounded() const;
  TextRange range_before(std::size_t place) const;

  std::u32string text_;
  std::vector<TextRange> ranges_;
};

}  // namespace hortator::models
