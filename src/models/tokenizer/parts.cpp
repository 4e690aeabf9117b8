#include "models/tokenizer/parts.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/text/text.hpp"
#include "models/tokenizer/characters/splitters.hpp"
#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/regex/pattern.hpp"

namespace hortator::models {
namespace {

/// Printable bytes stand for themselves, the others for characters from U+0100 on.
std::array<char32_t, 256> byte_characters() {
  std::array<char32_t, 256> all{};
  char32_t next = 256;
  for (unsigned byte = 0; byte < all.size(); ++byte) {
    const bool is_printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    all[byte] = is_printable ? byte : next++;
  }
  return all;
}

std::vector<TextRange> occurrences(const std::u32string& text, const std::u32string& part) {
  std::vector<TextRange> ranges;
  if (part.empty()) return ranges;
  for (auto at = text.find(part); at != std::u32string::npos; at = text.find(part, at + part.size()))
    ranges.push_back({at, at + part.size()});
  return ranges;
}

}  // namespace

char32_t character_of_byte(unsigned char byte) {
  static const auto all = byte_characters();
  return all[byte];
}

std::optional<unsigned char> byte_of_character(char32_t character) {
  static const auto bytes = [] {
    std::array<int, 512> all{};
    all.fill(-1);
    for (int byte = 0; byte < 256; ++byte) all[character_of_byte(static_cast<unsigned char>(byte))] = byte;
    return all;
  }();
  if (character >= bytes.size() || bytes[character] < 0) return {};
  return static_cast<unsigned char>(bytes[character]);
}

std::string text_field(const ConfigFields& fields, const std::string& name) {
  fields.require(fields.has(name), name, "expected a string");
  return fields.text(name, "");
}

std::function<std::vector<TextRange>(const std::u32string&)> make_pattern(const ConfigFields& fields) {
  const bool is_string = fields.has("String");
  const auto pattern = text_field(fields, is_string ? "String" : "Regex");
  fields.require_all_used();
  if (is_string) return [part = code_points(pattern)](const std::u32string& text) { return occurrences(text, part); };
  if (pattern == gpt2_expression) return split_as_gpt2;
  if (pattern == llama3_expression) return [](const std::u32string& text) { return split_as_llama3(text, 3); };
  if (pattern == qwen2_expression) return [](const std::u32string& text) { return split_as_llama3(text, 1); };
  return [expression = Pattern(pattern)](const std::u32string& text) { return expression.matches(text); };
}

void trim_offsets(Encoding& encoding, bool has_prefix_space) {
  const auto is_space = [](char32_t c) { return c == character_of_byte(' ') || is_whitespace(c); };
  for (std::size_t i = 0; i < encoding.tokens.size(); ++i) {
    const auto token = code_points(encoding.tokens[i]);
    auto& [begin, end] = encoding.offsets[i];
    std::size_t leading = 0, trailing = 0;
    while (leading < token.size() && is_space(token[leading])) ++leading;
    while (trailing < token.size() && is_space(token[token.size() - 1 - trailing])) ++trailing;
    const bool is_added = (i == 0 || begin == 0) && has_prefix_space && leading == 1;
    if (!is_added) begin = std::min(begin + leading, end);
    if (end >= trailing) end = std::max(end - trailing, begin);
  }
}

void append(Encoding& to, Encoding more) {
  const auto join = [](auto& all, auto& added) {
    all.insert(all.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
  };
  join(to.ids, more.ids);
  join(to.tokens, more.tokens);
  join(to.type_ids, more.type_ids);
  join(to.attention_mask, more.attention_mask);
  join(to.special_tokens_mask, more.special_tokens_mask);
  join(to.offsets, more.offsets);
}

}  // namespace hortator::models
