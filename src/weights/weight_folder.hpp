#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weights/weight_shards.hpp"

namespace hortator::weights {

/// A folder that gets a model's files, beside whatever else is in it (a config, a tokenizer). They are written aside,
/// under hidden names, and take their own names when all are on the disk; files of earlier saves of the same kind go,
/// also those that were killed. At every instant, whatever is killed, the older model or the newer one is there, whole:
/// where both have files of the same names, there is first an index of the hidden ones.
class WeightFolder {
 public:
  WeightFolder(std::filesystem::path folder, std::string id, WeightFileNames names);

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path aside(const std::string& name) const;

  // By one rank:
  void begin() const;  ///< makes the folder, durably
  /// When all files of `shards` lie aside and are durable.
  void publish(const WeightShards& shards, const std::vector<WeightToSave>& weights);
  /// Removes what there is of a save that failed. Where the newer model is in place already, it stays.
  void abandon(const WeightShards& shards) const noexcept;

 private:
  std::filesystem::path index_aside() const;
  void publish_shards(const WeightShards& shards, const std::vector<WeightToSave>& weights);
  void put_index(const std::string& json);
  void move_in(const std::string& name);
  void give_name(const std::string& name) const;
  bool is_ours(const std::string& name) const;
  void remove_others(const WeightShards& shards) const;

  std::filesystem::path folder_;
  std::string id_;
  WeightFileNames names_;
  std::vector<std::string> moved_;  ///< into places where nothing was
  bool is_visible_ = false;         ///< whoever opens the folder finds the newer model
};

}  // namespace hortator::weights
