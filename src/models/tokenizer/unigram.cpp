// Unigram: of all ways to cut a piece into tokens, the one whose scores have the largest sum (Viterbi).
#include <algorithm>
#include <hortator/error.hpp>
#include <limits>

#include "core/text/text.hpp"
#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/parts.hpp"
#include "models/tokenizer/token_trie.hpp"

namespace hortator::models {
namespace {

constexpr double unknown_penalty = 10;  // below the lowest score

class Unigram final : public TokenModel {
 public:
  Unigram(const ConfigFields& fields, const nlohmann::json& stored)
      : file_(fields.file()), falls_back_to_bytes_(fields.flag("byte_fallback", false)) {
    read_vocabulary(fields, stored);
    if (const auto unknown = fields.token("unk_id")) {
      const bool is_known = *unknown >= 0 && static_cast<std::size_t>(*unknown) < scores_.size();
      fields.require(is_known, "unk_id", "expected the number of a token of the vocabulary");
      unknown_ = *unknown;
    }
    for (const auto& [token, id] : vocabulary_) trie_.add(code_points(token), id);
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  std::vector<PieceToken> tokenize(const std::u32string& piece) const override {
    std::vector<PieceToken> tokens;
    for (const auto& range : ranges_of(best_ends(piece))) add(tokens, piece, range);
    return tokens;
  }

 private:
  /// The best way to cut the text up to a place: its score, and its last token.
  struct BestEnd {
    double score = 0;
    std::optional<std::size_t> begin = {};
    bool is_unknown = false;

    bool accepts(double other) const { return !begin || other > score; }
    void offer(double other, std::size_t from, bool unknown) {
      if (accepts(other)) *this = {other, from, unknown};
    }
  };

  void read_vocabulary(const ConfigFields& fields, const nlohmann::json& stored) {
    const auto found = stored.find("vocab");
    const auto* const expected = "expected a list of tokens, each with its score";
    require_list(found != stored.end() && found->is_array(), fields, "vocab", expected);
    double lowest = std::numeric_limits<double>::infinity();
    for (const auto& one : *found) {
      const bool is_pair = one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_number();
      require_list(is_pair, fields, "vocab", expected);
      vocabulary_.insert_or_assign(one[0].get<std::string>(), static_cast<std::int64_t>(scores_.size()));
      scores_.push_back(one[1].get<double>());
      lowest = std::min(lowest, scores_.back());
    }
    unknown_score_ = lowest - unknown_penalty;
  }

  std::vector<BestEnd> best_ends(const std::u32string& piece) const {
    std::vector<BestEnd> ends(piece.size() + 1);
    for (std::size_t at = 0; at < piece.size(); ++at) {
      const auto so_far = ends[at].score;
      bool has_single = false;
      trie_.visit(piece, at, [&](std::size_t end, std::int64_t id) {
        ends[end].offer(so_far + scores_[static_cast<std::size_t>(id)], at, id == unknown_);
        has_single = has_single || end == at + 1;
      });
      if (has_single || !ends[at + 1].accepts(so_far + unknown_score_)) continue;
      if (!unknown_) refuse(to_utf8(piece.substr(at, 1)));
      ends[at + 1].offer(so_far + unknown_score_, at, true);
    }
    return ends;
  }

  /// Unknown tokens that touch are one.
  std::vector<TextRange> ranges_of(const std::vector<BestEnd>& ends) const {
    std::vector<TextRange> ranges;
    bool was_unknown = false;
    for (auto end = ends.size() - 1; end > 0;) {
      const auto begin = *ends[end].begin;
      if (ends[end].is_unknown && was_unknown) {
        ranges.back().begin = begin;
      } else {
        ranges.push_back({begin, end});
      }
      was_unknown = ends[end].is_unknown;
      end = begin;
    }
    std::ranges::reverse(ranges);
    return ranges;
  }

  void add(std::vector<PieceToken>& tokens, const std::u32string& piece, const TextRange& range) const {
    const auto utf8 = to_utf8(std::u32string_view(piece).substr(range.begin, range.size()));
    if (const auto found = vocabulary_.find(utf8); found != vocabulary_.end()) {
      tokens.push_back({.id = found->second, .range = range});
      return;
    }
    const auto bytes = falls_back_to_bytes_ ? byte_tokens(vocabulary_, utf8) : std::vector<std::int64_t>();
    for (const auto id : bytes) tokens.push_back({.id = id, .range = range});
    if (!bytes.empty()) return;
    tokens.push_back({.id = *unknown_, .range = range, .is_shown_as_text = true});
  }

  [[noreturn]] void refuse(const std::string& character) const {
    throw UsageError(
        {.what = text::concat("The text has ", text::quote(character), ", which the tokenizer does not know"),
         .why = text::concat(file_, " has no 'model.unk_id'"),
         .hint = "remove it from the text"});
  }

  std::string file_;
  Vocabulary vocabulary_;
  std::vector<double> scores_;  ///< by id
  TokenTrie trie_;
  std::optional<std::int64_t> unknown_;
  double unknown_score_ = 0;
  bool falls_back_to_bytes_;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram(const ConfigFields& fields, const nlohmann::json& stored) {
  return std::make_unique<Unigram>(fields, stored);
}

}  // namespace hortator::models
