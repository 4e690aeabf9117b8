#pragma once

#include <string>
#include <vector>

#include "models/tokenizer/characters/aligned_text.hpp"

namespace hortator::models {

/// The matches of GPT-2's regular expression: contractions, then words, numbers and other characters, each with a space
/// in front if there is one, and white space.
std::vector<TextRange> split_as_gpt2(const std::u32string& text);

/// The same for Llama 3: words may begin with any character, and numbers have up to `digits` digits (Qwen2: one).
std::vector<TextRange> split_as_llama3(const std::u32string& text, std::size_t digits);

/// The regular expressions, as the files have them.
extern const char* const gpt2_expression;
extern const char* const llama3_expression;
extern const char* const qwen2_expression;

}  // namespace hortator::models
