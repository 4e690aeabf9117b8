// Byte-pair encoding: a piece is its characters, and the pair of lowest rank is merged until none is left.
#include <algorithm>
#include <queue>
#include <tuple>

#include "core/text/text.hpp"
#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/parts.hpp"

namespace hortator::models {
namespace {

struct Merge {
  std::size_t rank = 0;
  std::int64_t id = 0;
};

/// A token that may still be merged. Symbols form a list, so that merging moves nothing.
struct Symbol {
  std::int64_t id = 0;
  TextRange range = {};
  std::ptrdiff_t previous = -1, next = -1;
  bool is_gone = false;
};

std::uint64_t pair_key(std::int64_t left, std::int64_t right) {
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint64_t>(right);
}

class BytePairs final : public TokenModel {
 public:
  BytePairs(const ConfigFields& fields, const nlohmann::json& stored)
      : vocabulary_(vocabulary_of(fields, stored)),
        prefix_(fields.text("continuing_subword_prefix", "")),
        suffix_(fields.text("end_of_word_suffix", "")),
        unknown_(fields.text("unk_token", "")),
        fuses_unknown_(fields.flag("fuse_unk", false)),
        falls_back_to_bytes_(fields.flag("byte_fallback", false)),
        ignores_merges_(fields.flag("ignore_merges", false)) {
    fields.require(fields.number("dropout", 0) == 0, "dropout", "only 0 is supported");
    fields.require(unknown_.empty() || vocabulary_.contains(unknown_), "unk_token",
                   "expected a token of the vocabulary");
    read_merges(fields, stored);
    for (const auto& [token, id] : vocabulary_) {
      const auto characters = code_points(token);
      if (characters.size() == 1) single_.emplace(characters.front(), id);
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  std::vector<PieceToken> tokenize(const std::u32string& piece) const override {
    if (ignores_merges_) {
      const auto whole = vocabulary_.find(to_utf8(piece));
      if (whole != vocabulary_.end()) return {{whole->second, {0, piece.size()}}};
    }
    auto symbols = symbols_of(piece);
    merge(symbols);
    std::vector<PieceToken> tokens;
    for (const auto& symbol : symbols)
      if (!symbol.is_gone) tokens.push_back({symbol.id, symbol.range});
    return tokens;
  }

 private:
  void read_merges(const ConfigFields& fields, const nlohmann::json& stored) {
    const auto found = stored.find("merges");
    require_list(found != stored.end() && found->is_array(), fields, "merges", "expected a list");
    for (std::size_t rank = 0; rank < found->size(); ++rank) {
      const auto [left, right] = pair_of(fields, (*found)[rank]);
      const auto joined = left + (right.starts_with(prefix_) ? right.substr(prefix_.size()) : right);
      const auto first = vocabulary_.find(left), second = vocabulary_.find(right), both = vocabulary_.find(joined);
      const auto end = vocabulary_.end();
      require_list(first != end && second != end && both != end, fields, "merges",
                   text::concat("the pair ", text::quote(left), ", ", text::quote(right), " is not in the vocabulary"));
      merges_.emplace(pair_key(first->second, second->second), Merge{.rank = rank, .id = both->second});
    }
  }

  /// ["a", "b"], or "a b" in older files.
  static std::pair<std::string, std::string> pair_of(const ConfigFields& fields, const nlohmann::json& merge) {
    if (merge.is_string()) {
      const auto text = merge.get<std::string>();
      const auto space = text.find(' ');
      if (space != std::string::npos) return {text.substr(0, space), text.substr(space + 1)};
    }
    const bool is_pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    require_list(is_pair, fields, "merges", "expected pairs of strings");
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }

  std::optional<std::int64_t> id_at(const std::u32string& piece, std::size_t i) const {
    const bool is_plain = (i == 0 || prefix_.empty()) && (i + 1 < piece.size() || suffix_.empty());
    if (is_plain) {
      const auto found = single_.find(piece[i]);
      return found == single_.end() ? std::nullopt : std::optional(found->second);
    }
    auto token = i > 0 ? prefix_ : std::string();
    append_utf8(token, piece[i]);
    if (i + 1 == piece.size()) token += suffix_;
    const auto found = vocabulary_.find(token);
    return found == vocabulary_.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<Symbol> symbols_of(const std::u32string& piece) const {
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    bool was_unknown = false;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const auto id = id_at(piece, i);
      const bool is_unknown = !id && !add_bytes(symbols, piece[i], i);
      if (id) symbols.push_back({.id = *id, .range = {i, i + 1}});
      if (is_unknown && !unknown_.empty()) {
        if (fuses_unknown_ && was_unknown) {
          symbols.back().range.end = i + 1;
        } else {
          symbols.push_back({.id = vocabulary_.at(unknown_), .range = {i, i + 1}});
        }
      }
      was_unknown = is_unknown;
    }
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      symbols[i].previous = static_cast<std::ptrdiff_t>(i) - 1;
      symbols[i].next = i + 1 < symbols.size() ? static_cast<std::ptrdiff_t>(i) + 1 : -1;
    }
    return symbols;
  }

  /// The tokens <0x00> to <0xFF> of a character's bytes. Returns false if one is missing.
  bool add_bytes(std::vector<Symbol>& symbols, char32_t character, std::size_t at) const {
    if (!falls_back_to_bytes_) return false;
    std::string utf8;
    append_utf8(utf8, character);
    const auto ids = byte_tokens(vocabulary_, utf8);
    for (const auto id : ids) symbols.push_back({.id = id, .range = {at, at + 1}});
    return !ids.empty();
  }

  using Candidate = std::tuple<std::size_t, std::ptrdiff_t, std::int64_t>;  ///< rank, left symbol, merged id

  void merge(std::vector<Symbol>& symbols) const {
    std::vector<Candidate> memory;
    memory.reserve(symbols.size());
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(std::greater<>(), std::move(memory));
    const auto at = [&](std::ptrdiff_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
    const auto find = [&](std::ptrdiff_t left) -> const Merge* {
      if (left < 0 || at(left).next < 0) return nullptr;
      const auto found = merges_.find(pair_key(at(left).id, at(at(left).next).id));
      return found == merges_.end() ? nullptr : &found->second;
    };
    const auto offer = [&](std::ptrdiff_t left) {
      if (const auto* merge = find(left)) queue.emplace(merge->rank, left, merge->id);
    };
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) offer(static_cast<std::ptrdiff_t>(i));
    while (!queue.empty()) {
      const auto [rank, left, id] = queue.top();
      queue.pop();
      const auto* current = at(left).is_gone ? nullptr : find(left);
      if (current == nullptr || current->id != id) continue;
      auto& right = at(at(left).next);
      at(left).id = id;
      at(left).range.end = right.range.end;
      at(left).next = right.next;
      right.is_gone = true;
      if (right.next >= 0) at(right.next).previous = left;
      offer(at(left).previous);
      offer(left);
    }
  }

  Vocabulary vocabulary_;
  std::unordered_map<char32_t, std::int64_t> single_;  ///< tokens of one character
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::string prefix_, suffix_, unknown_;
  bool fuses_unknown_, falls_back_to_bytes_, ignores_merges_;
};

}  // namespace

std::unique_ptr<TokenModel> make_byte_pairs(const ConfigFields& fields, const nlohmann::json& stored) {
  return std::make_unique<BytePairs>(fields, stored);
}

}  // namespace hortator::models
