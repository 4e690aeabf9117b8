#include <algorithm>

#include "core/text/text.hpp"
#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/parts.hpp"

namespace hortator::models {
namespace {

void lower(AlignedText& text) {
  std::vector<CharacterChange> characters;
  characters.reserve(text.size());
  for (const auto c : text.text()) {
    const auto lowered = lower_case(c);
    for (std::size_t i = 0; i < lowered.size(); ++i) characters.push_back({lowered[i], i == 0 ? 0 : 1});
  }
  text.transform(characters);
}

void strip_marks(AlignedText& text) {
  text.keep_if([](char32_t c) { return !is_mark(c); });
}

void strip_nonspacing_marks(AlignedText& text) {
  text.keep_if([](char32_t c) { return !is_nonspacing_mark(c); });
}

Normalizer to_form(NormalizationForm form) {
  return [form](AlignedText& text) {
    const auto is_ascii = std::ranges::all_of(text.text(), [](char32_t c) { return c < 0x80; });
    if (!is_ascii) text.transform(normalized(text.text(), form));
  };
}

bool is_tab_or_line(char32_t c) { return c == '\t' || c == '\n' || c == '\r'; }

void clean(AlignedText& text) {
  text.keep_if([](char32_t c) { return c != 0 && c != 0xFFFD && (is_tab_or_line(c) || !is_control(c)); });
  text.map([](char32_t c) { return is_whitespace(c) ? U' ' : c; });
}

/// CJK ideographs, which are words of their own.
bool is_ideograph(char32_t c) {
  constexpr std::pair<char32_t, char32_t> blocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                                      {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                                                      {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  return std::ranges::any_of(blocks, [c](const auto& block) { return c >= block.first && c <= block.second; });
}

void space_ideographs(AlignedText& text) {
  if (std::ranges::none_of(text.text(), is_ideograph)) return;
  std::vector<CharacterChange> characters;
  for (const auto c : text.text()) {
    if (is_ideograph(c)) {
      characters.insert(characters.end(), {{U' ', 0}, {c, 1}, {U' ', 1}});
    } else {
      characters.push_back({c, 0});
    }
  }
  text.transform(characters);
}

Normalizer bert_normalizer(const ConfigFields& fields) {
  const bool cleans = fields.flag("clean_text", true), spaces = fields.flag("handle_chinese_chars", true);
  const bool lowers = fields.flag("lowercase", true), strips = fields.flag("strip_accents", lowers);
  const auto decompose = to_form(NormalizationForm::nfd);
  return [=](AlignedText& text) {
    if (cleans) clean(text);
    if (spaces) space_ideographs(text);
    if (strips) decompose(text), strip_nonspacing_marks(text);
    if (lowers) lower(text);
  };
}

Normalizer normalizer_sequence(const ConfigFields& fields) {
  std::vector<Normalizer> all;
  for (const auto& one : fields.objects("normalizers")) all.push_back(make_normalizer(one));
  return [all](AlignedText& text) {
    for (const auto& one : all) one(text);
  };
}

Normalizer normalizer_of_type(const ConfigFields& fields, const std::string& type) {
  if (type == "Sequence") return normalizer_sequence(fields);
  if (type == "BertNormalizer") return bert_normalizer(fields);
  if (type == "NFC") return to_form(NormalizationForm::nfc);
  if (type == "NFD") return to_form(NormalizationForm::nfd);
  if (type == "NFKC") return to_form(NormalizationForm::nfkc);
  if (type == "NFKD") return to_form(NormalizationForm::nfkd);
  if (type == "Lowercase") return lower;
  if (type == "StripAccents") return strip_marks;
  if (type == "Strip") {
    const bool left = fields.flag("strip_left", true), right = fields.flag("strip_right", true);
    return [=](AlignedText& text) { text.strip(left, right); };
  }
  if (type == "Prepend") {
    const auto added = code_points(text_field(fields, "prepend"));
    return [added](AlignedText& text) { text.prepend(added); };
  }
  if (type == "Precompiled") return make_precompiled(fields);
  const auto pattern = make_pattern(fields.object("pattern"));
  const auto content = code_points(fields.text("content", ""));
  return [pattern, content](AlignedText& text) {
    const auto ranges = pattern(text.text());
    if (!ranges.empty()) text.replace(ranges, content);
  };
}

}  // namespace

Normalizer make_normalizer(const ConfigFields& fields) {
  if (fields.empty()) return [](AlignedText&) {};
  const auto type = text_field(fields, "type");
  fields.require_one_of("type", type,
                        {"Sequence", "BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents",
                         "Strip", "Prepend", "Replace", "Precompiled"});
  auto normalizer = normalizer_of_type(fields, type);
  fields.require_all_used();
  return normalizer;
}

}  // namespace hortator::models
