#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizer/characters/aligned_text.hpp"
#include "models/tokenizer/characters/characters.hpp"

namespace hortator::models {

/// The code points of UTF-8 text. Throws UsageError, with the place of the first wrong byte, for other bytes.
std::u32string code_points(std::string_view utf8);
std::string to_utf8(std::u32string_view text);
std::size_t utf8_size(std::u32string_view text);  ///< in bytes
void append_utf8(std::string& utf8, char32_t character);

enum class NormalizationForm { nfc, nfd, nfkc, nfkd };
/// The normalised text, with the change that each character makes.
std::vector<CharacterChange> normalized(const std::u32string& text, NormalizationForm form);

}  // namespace hortator::models
