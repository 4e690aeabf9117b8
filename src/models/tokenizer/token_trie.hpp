#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hortator::models {

/// Tokens by their characters: finds all that a text has at a place.
class TokenTrie {
 public:
  void add(std::u32string_view token, std::int64_t id) {
    std::uint32_t node = root;
    for (const auto c : token) {
      const auto [child, is_new] = children_.try_emplace(key(node, c), static_cast<std::uint32_t>(ids_.size()));
      if (is_new) ids_.push_back(none);
      node = child->second;
    }
    ids_[node] = id;
  }

  /// Calls `found(end, id)` for each token that the text has at `begin`, the shortest first.
  template <typename Found>
  void visit(std::u32string_view text, std::size_t begin, const Found& found) const {
    std::uint32_t node = root;
    for (auto at = begin; at < text.size(); ++at) {
      const auto child = children_.find(key(node, text[at]));
      if (child == children_.end()) return;
      node = child->second;
      if (ids_[node] != none) found(at + 1, ids_[node]);
    }
  }

 private:
  static constexpr std::uint32_t root = 0;
  static constexpr std::int64_t none = -1;
  static std::uint64_t key(std::uint32_t node, char32_t c) { return (std::uint64_t{node} << 32) | c; }

  std::unordered_map<std::uint64_t, std::uint32_t> children_;  ///< by node and character
  std::vector<std::int64_t> ids_ = {none};                     ///< of each node
};

}  // namespace hortator::models
