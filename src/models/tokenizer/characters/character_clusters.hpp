#pragma once

#include <string>
#include <vector>

#include "models/tokenizer/characters/aligned_text.hpp"

namespace hortator::models {

/// The extended grapheme clusters of a text (UAX 29): what a reader takes for one character. Two rules are left out,
/// those of Indic conjuncts and of flags: the clusters that they make are never replaced as a whole.
std::vector<TextRange> character_clusters(const std::u32string& text);

}  // namespace hortator::models
