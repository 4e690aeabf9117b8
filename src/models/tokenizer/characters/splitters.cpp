#include "models/tokenizer/characters/splitters.hpp"

#include "models/tokenizer/characters/unicode.hpp"

namespace hortator::models {

const char* const gpt2_expression = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char* const llama3_expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const qwen2_expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

enum class CharacterKind { white, alphabetic, number, other };

CharacterKind kind_of(char32_t c) {
  if (is_letter(c)) return CharacterKind::alphabetic;
  if (is_number(c)) return CharacterKind::number;
  return is_whitespace(c) ? CharacterKind::white : CharacterKind::other;
}

bool is_line_end(char32_t c) { return c == '\n' || c == '\r'; }

/// Reads a text from left to right.
class TextScanner {
 public:
  explicit TextScanner(const std::u32string& text) : text_(text) {}

  bool is_kind(std::size_t at, CharacterKind kind) const { return at < text_.size() && kind_of(text_[at]) == kind; }
  std::size_t end_of_run(std::size_t at, CharacterKind kind) const {
    while (is_kind(at, kind)) ++at;
    return at;
  }

  /// The end of 's, 't, 're, 've, 'm, 'll or 'd at this place; the place itself if there is none.
  std::size_t contraction(std::size_t at, bool ignores_case) const {
    if (text_[at] != U'\'') return at;
    const auto lower = [&](std::size_t i) -> char32_t {
      const auto c = i < text_.size() ? text_[i] : U'\0';
      if (!ignores_case) return c;
      if (c == 0x17F) return U's';  // the long s
      return c >= 'A' && c <= 'Z' ? c + 32 : c;
    };
    const auto first = lower(at + 1), second = lower(at + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
    return first == 'l' && second == 'l' ? at + 3 : at;
  }

  /// White space leaves its last character to what follows, if anything does.
  std::size_t white(std::size_t at) const {
    const auto end = end_of_run(at, CharacterKind::white);
    return end < text_.size() && end - at > 1 ? end - 1 : end;
  }

  /// White space up to its last end of a line; the place itself if it has none.
  std::size_t lines(std::size_t at) const {
    const auto end = end_of_run(at, CharacterKind::white);
    for (auto last = end; last > at; --last)
      if (is_line_end(text_[last - 1])) return last;
    return at;
  }

  std::size_t line_ends(std::size_t at) const {
    while (at < text_.size() && is_line_end(text_[at])) ++at;
    return at;
  }

 private:
  const std::u32string& text_;
};

}  // namespace

std::vector<TextRange> split_as_gpt2(const std::u32string& text) {
  const TextScanner scan(text);
  std::vector<TextRange> ranges;
  for (std::size_t at = 0; at < text.size(); at = ranges.back().end) {
    auto end = scan.contraction(at, false);
    if (end == at) {
      const auto begin = text[at] == U' ' ? at + 1 : at;
      end = begin;
      for (const auto kind : {CharacterKind::alphabetic, CharacterKind::number, CharacterKind::other})
        if (scan.is_kind(begin, kind)) end = scan.end_of_run(begin, kind);
      if (end == begin) end = scan.white(at);
    }
    ranges.push_back({at, end});
  }
  return ranges;
}

std::vector<TextRange> split_as_llama3(const std::u32string& text, std::size_t digits) {
  const TextScanner scan(text);
  std::vector<TextRange> ranges;
  for (std::size_t at = 0; at < text.size(); at = ranges.back().end) {
    auto end = scan.contraction(at, true);
    if (end == at) {
      const auto kind = kind_of(text[at]);
      const bool leads = kind != CharacterKind::alphabetic && kind != CharacterKind::number && !is_line_end(text[at]);
      const auto word = leads ? at + 1 : at;
      if (scan.is_kind(word, CharacterKind::alphabetic)) {
        end = scan.end_of_run(word, CharacterKind::alphabetic);
      } else if (kind == CharacterKind::number) {
        for (end = at; end < at + digits && scan.is_kind(end, CharacterKind::number);) ++end;
      } else {
        const auto marks = text[at] == U' ' ? at + 1 : at;
        end = scan.end_of_run(marks, CharacterKind::other);
        if (end > marks) {
          end = scan.line_ends(end);
        } else {
          end = scan.lines(at);
          if (end == at) end = scan.white(at);
        }
      }
    }
    ranges.push_back({at, end});
  }
  return ranges;
}

}  // namespace hortator::models
