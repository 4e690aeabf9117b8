#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::weights {

/// The file of each tensor, in the folder of the index.
using WeightMap = std::map<std::string, std::string>;

/// Parses an index: {"weight_map": {name: file}}, or that map without the outer object. Throws FileError if it is not a
/// valid index, if a name appears twice, or if a file is not in the folder itself. Pure.
WeightMap parse_weight_index(std::string_view json);

/// Reads an index file. Errors name it.
WeightMap read_weight_index(const std::filesystem::path& path);

struct WeightToSave {
  std::string name = {};
  std::int64_t bytes = 0;
  std::optional<std::size_t> shares =
      {};  ///< index of the earlier weight whose memory it shares; it adds no bytes then
};

/// The file names of one save: "model.safetensors", or "model-00001-of-00003.safetensors" and so on.
struct WeightFileNames {
  std::string stem = "model";
  std::string extension = ".safetensors";

  std::string single() const { return stem + extension; }
  std::string shard(std::size_t index, std::size_t count) const;
  std::string index() const { return single() + ".index.json"; }
  /// Whether a save with this stem and extension may have written a file of that name.
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

/// Distributes the weights in order: one larger than `max_bytes` gets a file of its own; the others are added to the
/// open file, or open the next one if it would exceed `max_bytes`. Weights that share memory go to the file of the
/// first.
WeightShards shard_weights(const std::vector<WeightToSave>& weights, std::int64_t max_bytes,
                           const WeightFileNames& names = {});

/// The contents of the index file of several files.
std::string index_json(const WeightShards& shards, const std::vector<WeightToSave>& weights);

}  // namespace hortator::weights
