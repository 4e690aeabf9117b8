#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weights/weight_shards.hpp"

namespace hortator::weights {

/// A folder into which a model's files are saved, next to other files (a config, a tokenizer). The files are written
/// under hidden names and renamed when all are on the disk; then files of earlier saves of the same kind are removed,
/// of killed saves too. Whenever a process is killed, the older or the newer model is complete: if both have files of
/// the same names, an index of the hidden files is published first.
class WeightFolder {
 public:
  WeightFolder(std::filesystem::path folder, std::string id, WeightFileNames names);

  const std::filesystem::path& path() const { return folder_; }
  /// The hidden path under which a file is written.
  std::filesystem::path aside(const std::string& name) const;

  // One rank calls these:
  void begin() const;  ///< creates the folder, durably
  /// Call when all files of `shards` are durable under their hidden names.
  void publish(const WeightShards& shards, const std::vector<WeightToSave>& weights);
  /// Removes the files of a failed save, unless the newer model is already published.
  void abandon(const WeightShards& shards) const noexcept;

 private:
  std::filesystem::path index_aside() const;
  void publish_shards(const WeightShards& shards, const std::vector<WeightToSave>& weights);
  void write_index(const std::string& json);
  void move_in(const std::string& name);
  void publish_file(const std::string& name) const;
  bool is_ours(const std::string& name) const;
  void remove_others(const WeightShards& shards) const;

  std::filesystem::path folder_;
  std::string id_;
  WeightFileNames names_;
  std::vector<std::string> moved_;  ///< files that replaced nothing
  bool is_visible_ = false;         ///< readers of the folder find the newer model
};

}  // namespace hortator::weights
