#include <algorithm>

#include "core/text/text.hpp"
#include "models/tokenizer/characters/splitters.hpp"
#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/parts.hpp"

namespace hortator::models {
namespace {

using Finder = std::function<std::vector<TextRange>(const std::u32string&)>;

enum class SplitBehavior { removed, isolated, contiguous, merged_with_previous, merged_with_next };

/// A part of a piece, and whether the pattern matched it.
struct SplitPart {
  TextRange range;
  bool is_match;
};

std::vector<SplitPart> parts_of(const std::vector<TextRange>& matches, std::size_t size, bool inverts) {
  std::vector<SplitPart> parts;
  std::size_t at = 0;
  for (const auto& match : matches) {
    if (match.begin > at) parts.push_back({{at, match.begin}, inverts});
    parts.push_back({match, !inverts});
    at = match.end;
  }
  if (at < size) parts.push_back({{at, size}, inverts});
  return parts;
}

/// Which parts stay, and which become one.
std::vector<TextRange> joined(const std::vector<SplitPart>& parts, SplitBehavior behavior) {
  std::vector<TextRange> ranges;
  bool was_match = false;
  for (const auto& [range, is_match] : parts) {
    const bool is_first = &range == &parts.front().range;
    bool joins = false;
    if (behavior == SplitBehavior::removed && is_match) continue;
    if (behavior == SplitBehavior::contiguous) joins = is_match == was_match;
    if (behavior == SplitBehavior::merged_with_previous) joins = is_match && !was_match;
    if (behavior == SplitBehavior::merged_with_next) joins = !is_match && was_match;
    if (joins && !is_first) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
    was_match = is_match;
  }
  return ranges;
}

PreTokenizer splitter(const Finder& find, SplitBehavior behavior, bool inverts = false) {
  return [=](const std::vector<AlignedText>& pieces) {
    std::vector<AlignedText> split;
    for (const auto& piece : pieces) {
      for (const auto& range : joined(parts_of(find(piece.text()), piece.size(), inverts), behavior))
        if (range.size() > 0) split.push_back(piece.slice(range));
    }
    return split;
  };
}

Finder each_character(bool (*matches)(char32_t)) {
  return [matches](const std::u32string& text) {
    std::vector<TextRange> ranges;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (matches(text[i])) ranges.push_back({i, i + 1});
    return ranges;
  };
}

bool is_punctuation_mark(char32_t c) {
  const bool is_ascii_mark = c < 0x80 && c > ' ' && !is_letter(c) && !is_number(c) && c != 0x7F;
  return is_ascii_mark || is_punctuation(c);
}

SplitBehavior behavior_of(const ConfigFields& fields, const std::string& absent) {
  const std::map<std::string, SplitBehavior> known = {{"Removed", SplitBehavior::removed},
                                                      {"Isolated", SplitBehavior::isolated},
                                                      {"Contiguous", SplitBehavior::contiguous},
                                                      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
                                                      {"MergedWithNext", SplitBehavior::merged_with_next}};
  std::vector<std::string> names;
  for (const auto& [name, value] : known) names.push_back(name);
  const auto name = fields.text("behavior", absent);
  fields.require_one_of("behavior", name, names);
  return known.at(name);
}

AlignedText as_bytes(const AlignedText& piece) {
  std::vector<CharacterChange> characters;
  characters.reserve(piece.size());
  std::string utf8;
  for (const auto c : piece.text()) {
    utf8.clear();
    append_utf8(utf8, c);
    for (std::size_t i = 0; i < utf8.size(); ++i)
      characters.push_back({character_of_byte(static_cast<unsigned char>(utf8[i])), i == 0 ? 0 : 1});
  }
  auto bytes = piece;
  bytes.transform(characters);
  return bytes;
}

PreTokenizer byte_level(const ConfigFields& fields) {
  const bool adds_space = fields.flag("add_prefix_space", true), splits = fields.flag("use_regex", true);
  fields.skip("trim_offsets");
  const auto split = splitter(split_as_gpt2, SplitBehavior::isolated);
  return [=](std::vector<AlignedText> pieces) {
    if (adds_space) {
      for (auto& piece : pieces)
        if (!piece.empty() && piece.text().front() != U' ') piece.prepend(U" ");
    }
    if (splits) pieces = split(std::move(pieces));
    for (auto& piece : pieces) piece = as_bytes(piece);
    return pieces;
  };
}

PreTokenizer metaspace(const ConfigFields& fields) {
  const auto replacement = code_points(fields.text("replacement", "\u2581"));
  fields.require(replacement.size() == 1, "replacement", "expected one character");
  const auto scheme = fields.text("prepend_scheme", fields.flag("add_prefix_space", true) ? "always" : "never");
  fields.require_one_of("prepend_scheme", scheme, {"always", "first", "never"});
  const bool splits = fields.flag("split", true);
  fields.skip("str_rep");
  const auto mark = replacement.front();
  const auto find = [mark](const std::u32string& text) {
    std::vector<TextRange> ranges;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == mark) ranges.push_back({i, i + 1});
    return ranges;
  };
  const auto split = splitter(find, SplitBehavior::merged_with_next);
  return [=](std::vector<AlignedText> pieces) {
    for (auto& piece : pieces) {
      piece.map([mark](char32_t c) { return c == U' ' ? mark : c; });
      const bool begins =
          !piece.empty() && (scheme == "always" || (scheme == "first" && piece.original({0, 1}).begin == 0));
      if (begins && piece.text().front() != mark) piece.prepend(replacement);
    }
    return splits ? split(std::move(pieces)) : pieces;
  };
}

/// Words, and runs of other characters that are not white.
std::vector<TextRange> runs_and_marks(const std::u32string& text) {
  const auto kind = [](char32_t c) { return is_word(c) ? 2 : is_whitespace(c) ? 0 : 1; };
  std::vector<TextRange> ranges;
  for (std::size_t i = 0; i < text.size();) {
    const auto begin = i;
    while (i < text.size() && kind(text[i]) == kind(text[begin])) ++i;
    if (kind(text[begin]) != 0) ranges.push_back({begin, i});
  }
  return ranges;
}

PreTokenizer pre_tokenizer_sequence(const ConfigFields& fields) {
  std::vector<PreTokenizer> all;
  for (const auto& one : fields.objects("pretokenizers")) all.push_back(make_pre_tokenizer(one));
  return [all](std::vector<AlignedText> pieces) {
    for (const auto& one : all) pieces = one(std::move(pieces));
    return pieces;
  };
}

PreTokenizer bert_pre_tokenizer() {
  const auto spaces = splitter(each_character(is_whitespace), SplitBehavior::removed);
  const auto marks = splitter(each_character(is_punctuation_mark), SplitBehavior::isolated);
  return [=](std::vector<AlignedText> pieces) { return marks(spaces(std::move(pieces))); };
}

PreTokenizer pre_tokenizer_of_type(const ConfigFields& fields, const std::string& type) {
  if (type == "Sequence") return pre_tokenizer_sequence(fields);
  if (type == "ByteLevel") return byte_level(fields);
  if (type == "Metaspace") return metaspace(fields);
  if (type == "BertPreTokenizer") return bert_pre_tokenizer();
  if (type == "Whitespace") return splitter(runs_and_marks, SplitBehavior::removed, true);
  if (type == "WhitespaceSplit") return splitter(each_character(is_whitespace), SplitBehavior::removed);
  if (type == "Punctuation") return splitter(each_character(is_punctuation_mark), behavior_of(fields, "Isolated"));
  if (type == "Digits") {
    const bool single = fields.flag("individual_digits", false);
    return splitter(each_character(is_numeral), single ? SplitBehavior::isolated : SplitBehavior::contiguous);
  }
  if (type == "CharDelimiterSplit") {
    const auto delimiter = code_points(text_field(fields, "delimiter"));
    fields.require(delimiter.size() == 1, "delimiter", "expected one character");
    const auto find = [c = delimiter.front()](const std::u32string& text) {
      std::vector<TextRange> ranges;
      for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == c) ranges.push_back({i, i + 1});
      return ranges;
    };
    return splitter(find, SplitBehavior::removed);
  }
  return splitter(make_pattern(fields.object("pattern")), behavior_of(fields, ""), fields.flag("invert", false));
}

}  // namespace

PreTokenizer make_pre_tokenizer(const ConfigFields& fields) {
  if (fields.empty()) return [](std::vector<AlignedText> pieces) { return pieces; };
  const auto type = text_field(fields, "type");
  fields.require_one_of("type", type,
                        {"Sequence", "ByteLevel", "Metaspace", "BertPreTokenizer", "Whitespace", "WhitespaceSplit",
                         "Punctuation", "Digits", "CharDelimiterSplit", "Split"});
  auto pre_tokenizer = pre_tokenizer_of_type(fields, type);
  fields.require_all_used();
  return pre_tokenizer;
}

}  // namespace hortator::models
