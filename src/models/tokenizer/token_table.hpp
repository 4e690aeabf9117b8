#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hortator::models {

/// Tokens by their ids. Ids are nearly always 0, 1, 2, ...: these are looked up in a list, others in a map.
class TokenTable {
 public:
  /// A table for about that many tokens.
  explicit TokenTable(std::size_t count) : listed_(count) {}

  void set(std::int64_t id, std::string token) {
    const auto at = static_cast<std::size_t>(id);
    auto& place = at < listed_.size() ? listed_[at] : others_[id];
    if (!place) ++size_;
    largest_ = std::max(largest_, id);
    place = std::move(token);
  }

  /// Null if no token has the id.
  const std::string* find(std::int64_t id) const {
    const auto at = static_cast<std::size_t>(id);
    if (id >= 0 && at < listed_.size()) return listed_[at] ? &*listed_[at] : nullptr;
    const auto found = others_.find(id);
    return found == others_.end() ? nullptr : &*found->second;
  }

  std::size_t size() const { return size_; }
  std::int64_t largest_id() const { return largest_; }

 private:
  std::vector<std::optional<std::string>> listed_;
  std::unordered_map<std::int64_t, std::optional<std::string>> others_;
  std::size_t size_ = 0;
  std::int64_t largest_ = 0;
};

}  // namespace hortator::models
