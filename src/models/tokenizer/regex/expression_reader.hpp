#pragma once

#include <cstddef>
#include <hortator/error.hpp>
#include <string>
#include <string_view>

#include "core/text/text.hpp"
#include "models/tokenizer/characters/unicode.hpp"

namespace hortator::models {

/// Reads a regular expression from left to right.
class ExpressionReader {
 public:
  /// Throws UsageError for an expression that is not UTF-8.
  explicit ExpressionReader(const std::string& expression) : source_(expression), text_(code_points(expression)) {}

  bool at_end() const { return at_ == text_.size(); }
  bool is_next(std::u32string_view part) const { return std::u32string_view(text_).substr(at_).starts_with(part); }
  /// The next character; refuses an expression that ends here.
  char32_t peek() const {
    if (at_end()) refuse("ends too early");
    return text_[at_];
  }
  char32_t next() {
    const auto c = peek();
    ++at_;
    return c;
  }
  /// Skips `part` if it is next.
  bool take(std::u32string_view part) {
    const bool is_there = is_next(part);
    if (is_there) at_ += part.size();
    return is_there;
  }
  /// What lies before the next `end`, which is skipped as well.
  std::u32string take_until(char32_t end) {
    const auto found = text_.find(end, at_);
    if (found == std::u32string::npos) refuse("ends too early");
    auto part = text_.substr(at_, found - at_);
    at_ = found + 1;
    return part;
  }

  std::size_t place() const { return at_; }
  void go_back_to(std::size_t place) { at_ = place; }

  /// Throws UsageError: the expression has at this place what is not supported. `problem` continues the sentence.
  [[noreturn]] void refuse(const std::string& problem) const {
    throw UsageError({.what = text::concat("The regular expression ", text::quote(source_), " ", problem,
                                           " (at character ", at_, ")"),
                      .why = "it is written for Oniguruma, and ICU would not match the same with it",
                      .hint = "write it in another way in tokenizer.json: 'Tokenizers' in models.md lists what works"});
  }

 private:
  std::string source_;
  std::u32string text_;
  std::size_t at_ = 0;
};

}  // namespace hortator::models
