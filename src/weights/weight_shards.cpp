#include "weights/weight_shards.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace hortator::weights {
namespace {

using Shard = std::vector<std::size_t>;

/// Distributes the weights that have memory of their own.
std::vector<Shard> cut(const std::vector<WeightToSave>& weights, std::int64_t max_bytes) {
  std::vector<Shard> shards;
  Shard open;
  std::int64_t open_bytes = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto bytes = weights[i].bytes;
    if (weights[i].shares) continue;
    if (bytes > max_bytes) {
      shards.push_back({i});
      continue;
    }
    if (open_bytes + bytes > max_bytes) {
      shards.push_back(std::exchange(open, {}));
      open_bytes = 0;
    }
    open.push_back(i);
    open_bytes += bytes;
  }
  if (!open.empty()) shards.push_back(std::move(open));
  return shards;
}

/// Appends the weights that share memory to the file of the first one, in the order of the first ones.
void add_sharing(std::vector<Shard>& shards, const std::vector<WeightToSave>& weights) {
  std::vector<Shard*> shard_of(weights.size());
  for (auto& shard : shards) {
    for (const auto weight : shard) shard_of[weight] = &shard;
  }
  std::map<std::size_t, std::vector<std::size_t>> sharing;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].shares) sharing[*weights[i].shares].push_back(i);
  }
  for (const auto& [first, others] : sharing)
    shard_of[first]->insert(shard_of[first]->end(), others.begin(), others.end());
}

}  // namespace

std::string WeightFileNames::shard(std::size_t index, std::size_t count) const {
  std::array<char, 48> number{};
  std::snprintf(number.data(), number.size(), "-%05zu-of-%05zu", index + 1, count);
  return stem + number.data() + extension;
}

bool WeightFileNames::has(std::string_view name) const {
  if (name == single() || name == index()) return true;
  if (!name.starts_with(stem) || !name.ends_with(extension) || name.size() < stem.size() + extension.size())
    return false;
  constexpr std::string_view pattern = "-ddddd-of-ddddd";
  const auto number = name.substr(stem.size(), name.size() - stem.size() - extension.size());
  return std::ranges::equal(number, pattern,
                            [](char c, char wanted) { return wanted == 'd' ? c >= '0' && c <= '9' : c == wanted; });
}

WeightShards shard_weights(const std::vector<WeightToSave>& weights, std::int64_t max_bytes,
                           const WeightFileNames& names) {
  auto shards = cut(weights, max_bytes);
  add_sharing(shards, weights);
  WeightShards result;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const bool is_single = shards.size() == 1;
    result.files.push_back({.name = is_single ? names.single() : names.shard(i, shards.size()), .weights = shards[i]});
  }
  for (const auto& weight : weights) result.total_bytes += weight.shares ? 0 : weight.bytes;
  return result;
}

std::string index_json(const WeightShards& shards, const std::vector<WeightToSave>& weights) {
  nlohmann::json index = {{"metadata", {{"total_size", shards.total_bytes}}}};
  for (const auto& file : shards.files) {
    for (const auto weight : file.weights) index["weight_map"][weights[weight].name] = file.name;
  }
  return index.dump(2, ' ', true) + "\n";  // as Hugging Face's library writes it
}

}  // namespace hortator::weights
