// How a state dict is cut into files.
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "base/text.hpp"
#include "base/units.hpp"
#include "io/tensor_spec.hpp"
#include "io/weight_shards.hpp"
#include "replay.hpp"

namespace hortator::golden {
namespace {

bool is_shard_checkpoint(const json& file) {
  const auto& one = file.at("cases").front();
  return one.contains("max_shard_size") && one.contains("tensors");
}

std::vector<io::WeightToSave> weights_of(const json& one) {
  std::vector<io::WeightToSave> weights;
  for (const auto& tensor : one.at("tensors")) {
    const io::TensorSpec spec = {.type = *io::type_named(tensor.at(2).get<std::string>()),
                                 .shape = tensor.at(1).get<std::vector<std::int64_t>>()};
    weights.push_back({.name = tensor.at(0), .bytes = spec.bytes()});
  }
  const auto place_of = [&](const json& name) {
    return static_cast<std::size_t>(std::ranges::find(weights, name.get<std::string>(), &io::WeightToSave::name) -
                                    weights.begin());
  };
  for (const auto& tie : one.at("ties")) {
    const auto first = place_of(tie.at(0));
    weights.at(place_of(tie.at(1))).shares = weights.at(first).shares.value_or(first);
  }
  return weights;
}

io::WeightFileNames names_of(const json& one) {
  const auto pattern = one.value("pattern", "model{suffix}.safetensors");
  constexpr std::string_view suffix = "{suffix}";
  const auto place = pattern.find(suffix);
  return {.stem = pattern.substr(0, place), .extension = pattern.substr(place + suffix.size())};
}

json files_in(const io::WeightShards& shards, const std::vector<io::WeightToSave>& weights) {
  auto files = json::object();
  for (const auto& file : shards.files) {
    auto& names = files[file.name] = json::array();
    for (const auto weight : file.weights) names.push_back(weights[weight].name);
  }
  return files;
}

Outcome judge_shards(const json& one, std::int64_t most) {
  const auto weights = weights_of(one);
  const auto shards = io::shard_weights(weights, most, names_of(one));
  for (const auto& outcome :
       {compare("the files", files_in(shards, weights), one.at("files")),
        compare("is_sharded", shards.is_sharded() ? 1 : 0, one.at("is_sharded")),
        compare("the index", shards.is_sharded() ? json::parse(io::index_json(shards, weights)) : json(),
                one.at("index")),
        compare("total_size", shards.total_bytes, one.at("total_size"))}) {
    if (!outcome.difference.empty()) return outcome;
  }
  return equal();
}

Outcome judge_refusal(const json& one, const std::string& size) {
  const bool refused = one.contains("error");
  if (refused) return equal();
  if (size.ends_with('b')) return on_purpose("bits_or_bytes_is_asked");
  if (size.find('-') != std::string::npos) return on_purpose("sizes_are_not_negative");
  return differs("the size " + size + " was refused");
}

Outcome judge_shard_checkpoint(const json& one, const json& /*file*/) {
  const auto& size = one.at("max_shard_size");
  if (size.is_number()) return judge_shards(one, size);
  const auto words = size.get<std::string>();
  std::int64_t most = 0;
  try {
    most = static_cast<std::int64_t>(units::parse_bytes(words));
  } catch (const UsageError&) {
    return judge_refusal(one, words);
  }
  if (!one.contains("error")) return judge_shards(one, most);
  if (std::to_string(most) == words) return on_purpose("a_bare_number_is_bytes");
  return differs("the size " + words + " was taken");
}

}  // namespace

Format shard_checkpoint() {
  return {.name = "shard_checkpoint",
          .recognises = is_shard_checkpoint,
          .world = [](const json&) { return 0; },
          .judge = judge_shard_checkpoint};
}

}  // namespace hortator::golden
