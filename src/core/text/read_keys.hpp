#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::core {

/// The keys of a file that its reader has asked for. The others are mistakes, or ask for what is not supported: the
/// reader refuses them once it has read all that it knows.
class ReadKeys {
 public:
  void note(std::string_view key) { keys_.emplace(key); }
  bool contains(std::string_view key) const { return keys_.contains(key); }
  const std::set<std::string, std::less<>>& all() const { return keys_; }

  /// The keys of `entries`, which are pairs, that were not read.
  template <typename Entries>
  std::vector<std::string> unread(const Entries& entries) const {
    std::vector<std::string> rest;
    for (const auto& [key, value] : entries) {
      if (!contains(key)) rest.push_back(key);
    }
    return rest;
  }

 private:
  std::set<std::string, std::less<>> keys_;
};

}  // namespace hortator::core
