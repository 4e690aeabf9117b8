#include "weights/weight_shards.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/safetensors/strict_json.hpp"

namespace hortator::weights {
namespace {

constexpr std::uint64_t max_index_bytes = std::uint64_t{1} << 28;

[[noreturn]] void refuse(const std::string& problem) { throw formats::FileError({.what = problem}); }

formats::JsonValue::Object parse_object(std::string_view text) {
  try {
    auto value = formats::parse_strict_json(text);
    if (auto* object = std::get_if<formats::JsonValue::Object>(&value.content)) return std::move(*object);
    value.refuse("an object of names");
  } catch (const formats::JsonFault& fault) {
    refuse(text::concat("it is not a valid weight index: ", fault.what()));
  }
}

const formats::JsonValue::Object& weight_map_in(const formats::JsonValue::Object& index) {
  const auto found = std::ranges::find(index, "weight_map", &std::pair<std::string, formats::JsonValue>::first);
  if (found == index.end()) return index;
  if (const auto* map = std::get_if<formats::JsonValue::Object>(&found->second.content)) return *map;
  refuse("its weight_map is not an object of names");
}

/// A name in a downloaded index must not lead out of its folder. (A symbolic link in the folder may: the owner of the
/// folder made it.)
void require_inside(const std::string& name, const std::string& file) {
  constexpr std::string_view separators("/\\\0", 3);
  const bool is_plain =
      !file.empty() && file != "." && file != ".." && file.find_first_of(separators) == std::string::npos;
  if (is_plain) return;
  throw formats::FileError({.what = text::concat("it places the tensor ", text::quote(name), " in ", text::quote(file)),
                            .why = "the files of an index must be in its own folder"});
}

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

WeightMap parse_weight_index(std::string_view json) {
  const auto index = parse_object(json);
  WeightMap files;
  for (const auto& [name, value] : weight_map_in(index)) {
    const auto* file = std::get_if<std::string>(&value.content);
    if (file == nullptr) refuse(text::concat("the file of the tensor ", text::quote(name), " is ", value.described()));
    require_inside(name, *file);
    if (!files.emplace(name, *file).second) refuse(text::concat("it names the tensor ", text::quote(name), " twice"));
  }
  return files;
}

WeightMap read_weight_index(const std::filesystem::path& path) {
  try {
    return parse_weight_index(formats::read_text(path, max_index_bytes));
  } catch (const formats::FileError& error) {
    throw formats::FileError({.what = text::concat("The index ", path, " cannot be read: ", error.what())});
  }
}

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
