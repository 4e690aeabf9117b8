#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "models/tokenizer/parts.hpp"

namespace hortator::models {

/// A token that is found in a text before anything else.
struct AddedToken {
  std::string content = {};
  std::int64_t id = 0;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
};

/// A part of a text: an added token, or what lies between them.
struct AddedPart {
  TextRange range = {};
  std::optional<std::int64_t> id = {};
};

/// Finds added tokens: the longest at each place, from left to right.
class AddedTokenFinder {
 public:
  /// Finds the tokens by their contents after `normalizer`.
  AddedTokenFinder(const std::vector<AddedToken>& tokens, const Normalizer& normalizer);

  std::vector<AddedPart> split(const std::u32string& text) const;

 private:
  struct Entry {
    std::u32string content;
    AddedToken token;
  };
  const Entry* longest_at(const std::u32string& text, std::size_t at) const;

  std::unordered_map<char32_t, std::vector<Entry>> by_first_;  ///< the longest first
};

std::vector<AddedToken> added_tokens(const ConfigFields& fields);

}  // namespace hortator::models
