#include "models/tokenizer/gguf/gguf_merges.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"

namespace hortator::models {
namespace {

/// A longer token is a part of text that no merge makes; the limit keeps the search for its parts short.
constexpr std::size_t max_token_bytes = 1024;
constexpr std::size_t max_merges_per_token = 64;  // on average

struct ScoredMerge {
  double score;
  std::size_t left, right;
};

}  // namespace

nlohmann::json gguf_merges(const std::vector<std::string>& tokens, const std::vector<double>& scores,
                           const std::function<bool(std::size_t id)>& joins) {
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < tokens.size(); ++id)
    if (joins(id)) ids.emplace(tokens[id], id);
  std::vector<ScoredMerge> merges;
  for (const auto& [token, id] : ids) {
    if (token.size() > max_token_bytes) continue;
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      if (text::continues_character(token[cut])) continue;
      const auto left = ids.find(token.substr(0, cut)), right = ids.find(token.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      if (merges.size() == max_merges_per_token * tokens.size())
        throw UsageError({.what = "The tokens of the vocabulary join in too many ways",
                          .why = text::concat("a vocabulary has at most ", max_merges_per_token, " merges a token"),
                          .hint = "the file is damaged: write or copy it again"});
      merges.push_back({scores[id], left->second, right->second});
    }
  }
  std::ranges::sort(merges, std::ranges::less(),
                    [](const ScoredMerge& one) { return std::tuple(-one.score, one.left, one.right); });
  auto list = nlohmann::json::array();
  for (const auto& [score, left, right] : merges) list.push_back({tokens[left], tokens[right]});
  return list;
}

}  // namespace hortator::models
