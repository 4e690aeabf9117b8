#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// How a model's weights are cut into files: as Hugging Face's library cuts them. Pure.
namespace hortator::weights {

struct WeightToSave {
  std::string name = {};
  std::int64_t bytes = 0;
  std::optional<std::size_t> shares = {};  ///< the memory of this one, which comes before it: it needs none of its own
};

/// What the files of one save are called: "model.safetensors", or "model-00001-of-00003.safetensors" and so on.
struct WeightFileNames {
  std::string stem = "model";
  std::string extension = ".safetensors";

  std::string single() const { return stem + extension; }
  std::string shard(std::size_t index, std::size_t count) const;
  std::string index() const { return single() + ".index.json"; }
  /// Whether a file of that name comes from some save of this kind.
  bool has(std::string_view name) const;
};

struct WeightFile {
  std::string name = {};
  std::vector<std::size_t> weights = {};
};

struct WeightShards {
  std::vector<WeightFile> files = {};
  std::int64_t total_bytes = 0;

  bool is_sharded() const { return files.size() > 1; }
};

/// Walks through them in order: what is larger than `max_bytes` gets a file of its own at once, everything else goes
/// on the open file, or opens the next where that would grow larger than `max_bytes`. What shares memory goes to the
/// file of the first.
WeightShards shard_weights(const std::vector<WeightToSave>& weights, std::int64_t max_bytes,
                           const WeightFileNames& names = {});

/// What the index file of several says.
std::string index_json(const WeightShards& shards, const std::vector<WeightToSave>& weights);

}  // namespace hortator::weights
