// WordPiece: the longest token that a piece begins with, then the longest that continues it, and so on.
#include <algorithm>

#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/parts.hpp"

namespace hortator::models {
namespace {

class WordPieces final : public TokenModel {
 public:
  WordPieces(const ConfigFields& fields, const nlohmann::json& stored)
      : vocabulary_(vocabulary_of(fields, stored)),
        prefix_(fields.text("continuing_subword_prefix", "##")),
        longest_(static_cast<std::size_t>(fields.integer("max_input_chars_per_word", 100))) {
    const auto unknown = vocabulary_.find(fields.text("unk_token", "[UNK]"));
    fields.require(unknown != vocabulary_.end(), "unk_token", "expected a token of the vocabulary");
    unknown_ = unknown->second;
    for (const auto& [token, id] : vocabulary_) longest_token_ = std::max(longest_token_, token.size());
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  std::vector<PieceToken> tokenize(const std::u32string& piece) const override {
    std::vector<PieceToken> unknown = {{unknown_, {0, piece.size()}}};
    if (piece.size() > longest_) return unknown;
    std::vector<PieceToken> tokens;
    for (std::size_t begin = 0; begin < piece.size(); begin = tokens.back().range.end) {
      const auto token = longest_at(piece, begin);
      if (!token) return unknown;
      tokens.push_back(*token);
    }
    return tokens;
  }

 private:
  std::optional<PieceToken> longest_at(const std::u32string& piece, std::size_t begin) const {
    auto text = begin > 0 ? prefix_ : std::string();
    std::optional<PieceToken> found;
    for (auto end = begin; end < piece.size() && text.size() <= longest_token_;) {
      append_utf8(text, piece[end++]);
      const auto token = vocabulary_.find(text);
      if (token != vocabulary_.end()) found = PieceToken{token->second, {begin, end}};
    }
    return found;
  }

  Vocabulary vocabulary_;
  std::string prefix_;
  std::size_t longest_;            ///< pieces with more characters are unknown
  std::size_t longest_token_ = 0;  ///< in bytes
  std::int64_t unknown_ = 0;
};

}  // namespace

std::unique_ptr<TokenModel> make_word_pieces(const ConfigFields& fields, const nlohmann::json& stored) {
  return std::make_unique<WordPieces>(fields, stored);
}

}  // namespace hortator::models
