// How a state dict is split into files.
#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "replay.hpp"
#include "sizes.hpp"
#include "tensors.hpp"
#include "weights/weight_shards.hpp"

namespace hortator::golden {
namespace {

bool is_shard_checkpoint(const json& file) {
  const auto& one = file.at("cases").front();
  return one.contains("max_shard_size") && one.contains("tensors");
}

std::vector<weights::WeightToSave> weights_of(const json& one) {
  std::vector<weights::WeightToSave> weights;
  for (const auto& tensor : one.at("tensors")) {
    const formats::TensorSpec spec = {.type = scalar_type(tensor.at(2)),
                                      .shape = tensor.at(1).get<std::vector<std::int64_t>>()};
    weights.push_back({.name = tensor.at(0), .bytes = spec.bytes()});
  }
  const auto index_of = [&](const json& name) {
    return static_cast<std::size_t>(std::ranges::find(weights, name.get<std::string>(), &weights::WeightToSave::name) -
                                    weights.begin());
  };
  for (const auto& tie : one.at("ties")) {
    const auto [first, second] = std::minmax({index_of(tie.at(0)), index_of(tie.at(1))});
    weights.at(first).bytes = std::max(weights.at(first).bytes, weights.at(second).bytes);  // all of the storage
    weights.at(second).shares = weights.at(first).shares.value_or(first);
  }
  return weights;
}

weights::WeightFileNames names_of(const json& one) {
  const auto pattern = one.value("pattern", "model{suffix}.safetensors");
  constexpr std::string_view suffix = "{suffix}";
  const auto position = pattern.find(suffix);
  return {.stem = pattern.substr(0, position), .extension = pattern.substr(position + suffix.size())};
}

json files_in(const weights::WeightShards& shards, const std::vector<weights::WeightToSave>& weights) {
  auto files = json::object();
  for (const auto& file : shards.files) {
    auto& names = files[file.name] = json::array();
    for (const auto weight : file.weights) names.push_back(weights[weight].name);
  }
  return files;
}

Outcome compare_shards(const json& one, const std::vector<weights::WeightToSave>& weights, std::int64_t max_bytes) {
  const auto shards = weights::shard_weights(weights, max_bytes, names_of(one));
  for (const auto& outcome :
       {compare("the files", files_in(shards, weights), one.at("files")),
        compare("is_sharded", shards.is_sharded() ? 1 : 0, one.at("is_sharded")),
        compare("the index", shards.is_sharded() ? json::parse(weights::index_json(shards, weights)) : json(),
                one.at("index")),
        compare("total_size", shards.total_bytes, one.at("total_size"))}) {
    if (!outcome.difference.empty()) return outcome;
  }
  return equal();
}

// Accelerate identifies storages by address, which is the same for all empty ones.
std::vector<weights::WeightToSave> with_empty_ones_tied(std::vector<weights::WeightToSave> weights) {
  const auto first = std::ranges::find(weights, 0, &weights::WeightToSave::bytes);
  for (auto weight = first; weight != weights.end(); ++weight) {
    if (weight != first && weight->bytes == 0) weight->shares = static_cast<std::size_t>(first - weights.begin());
  }
  return weights;
}

Outcome judge_shards(const json& one, std::int64_t max_bytes) {
  const auto weights = weights_of(one);
  const auto same = compare_shards(one, weights, max_bytes);
  if (same.difference.empty()) return same;
  const auto as_there = compare_shards(one, with_empty_ones_tied(weights), max_bytes);
  return as_there.difference.empty() ? on_purpose("empty_tensors_share_nothing") : same;
}

Outcome judge_refused_shards(const json& one, const std::string& size) {
  const bool refused = one.contains("error");
  if (refused) return equal();
  if (const auto* rule = rule_that_refuses(size)) return on_purpose(rule);
  if (size.find('-') != std::string::npos) return on_purpose("sizes_are_not_negative");
  return differs("the size " + size + " was rejected");
}

Outcome judge_shard_checkpoint(const json& one, const json& /*file*/) {
  const auto& size = one.at("max_shard_size");
  if (size.is_number()) return judge_shards(one, size);
  const auto size_text = size.get<std::string>();
  std::int64_t max_bytes = 0;
  try {
    max_bytes = static_cast<std::int64_t>(units::parse_bytes(size_text));
  } catch (const UsageError&) {
    return judge_refused_shards(one, size_text);
  }
  if (!one.contains("error")) return judge_shards(one, max_bytes);
  const auto number = std::to_string(max_bytes);
  if (size_text == number || size_text == number + "B") return on_purpose("a_bare_number_is_bytes");
  if (size_text.ends_with("iB")) return on_purpose("binary_units_are_known");
  return differs("the size " + size_text + " was accepted");
}

}  // namespace

Format shard_checkpoint() {
  return {.name = "shard_checkpoint",
          .recognises = is_shard_checkpoint,
          .world = [](const json&) { return 0; },
          .judge = judge_shard_checkpoint};
}

}  // namespace hortator::golden
