#include "models/tokenizer/added_tokens.hpp"

#include <algorithm>

#include "models/tokenizer/characters/unicode.hpp"

namespace hortator::models {

AddedTokenFinder::AddedTokenFinder(const std::vector<AddedToken>& tokens, const Normalizer& normalizer) {
  for (const auto& token : tokens) {
    AlignedText content(code_points(token.content));
    normalizer(content);
    if (!content.empty()) by_first_[content.text().front()].push_back({content.text(), token});
  }
  for (auto& [first, entries] : by_first_)
    std::ranges::stable_sort(entries,
                             [](const Entry& a, const Entry& b) { return a.content.size() > b.content.size(); });
}

const AddedTokenFinder::Entry* AddedTokenFinder::longest_at(const std::u32string& text, std::size_t at) const {
  const auto entries = by_first_.find(text[at]);
  if (entries == by_first_.end()) return nullptr;
  for (const auto& entry : entries->second)
    if (text.compare(at, entry.content.size(), entry.content) == 0) return &entry;
  return nullptr;
}

std::vector<AddedPart> AddedTokenFinder::split(const std::u32string& text) const {
  std::vector<AddedPart> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; !by_first_.empty() && at < text.size();) {
    const auto* found = longest_at(text, at);
    if (found == nullptr) {
      ++at;
      continue;
    }
    auto begin = at, end = at + found->content.size();
    at = end;
    const auto& token = found->token;
    const bool joins_word = (begin > 0 && is_word(text[begin - 1])) || (end < text.size() && is_word(text[end]));
    if (begin < done || (token.single_word && joins_word)) continue;
    while (token.lstrip && begin > done && is_whitespace(text[begin - 1])) --begin;
    while (token.rstrip && end < text.size() && is_whitespace(text[end])) ++end;
    if (begin > done) parts.push_back({{done, begin}, {}});
    parts.push_back({{begin, end}, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, {}});
  return parts;
}

std::vector<AddedToken> added_tokens(const ConfigFields& fields) {
  std::vector<AddedToken> tokens;
  for (const auto& one : fields.objects("added_tokens")) {
    const bool is_special = one.flag("special", false);
    const auto id = one.token("id");
    one.require(id && *id >= 0, "id", "expected a number from 0");
    tokens.push_back({.content = text_field(one, "content"),
                      .id = *id,
                      .single_word = one.flag("single_word", false),
                      .lstrip = one.flag("lstrip", false),
                      .rstrip = one.flag("rstrip", false),
                      .normalized = one.flag("normalized", !is_special),
                      .special = is_special});
    one.require_all_used();
  }
  return tokens;
}

}  // namespace hortator::models
