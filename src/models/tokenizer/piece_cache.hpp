#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "models/tokenizer/parts.hpp"

namespace hortator::models {

/// A token model that keeps the tokens of short pieces, since the same words come again and again. Threads may share
/// it.
class PieceCache final : public TokenModel {
 public:
  explicit PieceCache(std::unique_ptr<TokenModel> model) : model_(std::move(model)), entries_(entry_count) {}

  const Vocabulary& vocabulary() const override { return model_->vocabulary(); }

  std::vector<PieceToken> tokenize(const std::u32string& piece) const override {
    if (piece.empty() || piece.size() > longest) return model_->tokenize(piece);
    const auto at = std::hash<std::u32string>()(piece) % entry_count;
    auto& entry = entries_[at];
    auto& mutex = mutexes_[at % mutexes_.size()];
    {
      const std::lock_guard lock(mutex);
      if (entry.piece == piece) return entry.tokens;
    }
    auto tokens = model_->tokenize(piece);
    const std::lock_guard lock(mutex);
    entry = {piece, tokens};
    return tokens;
  }

 private:
  static constexpr std::size_t longest = 32, entry_count = 1 << 13;
  struct Entry {
    std::u32string piece;
    std::vector<PieceToken> tokens;
  };

  std::unique_ptr<TokenModel> model_;
  mutable std::vector<Entry> entries_;
  mutable std::array<std::mutex, 64> mutexes_;
};

}  // namespace hortator::models
