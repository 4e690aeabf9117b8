#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/tokenizer/characters/aligned_text.hpp"

namespace hortator::models {

/// A regular expression as Hugging Face tokenizers has them: Oniguruma's.
class Pattern {
 public:
  /// Throws UsageError for an expression that ICU cannot compute as Oniguruma does.
  explicit Pattern(const std::string& expression);

  /// The matches, in order. One may be empty, but not where another one ends. An empty text has none.
  std::vector<TextRange> matches(const std::u32string& text) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace hortator::models
