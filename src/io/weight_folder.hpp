#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/weight_shards.hpp"

namespace hortator::io {

/// A folder that gets a model's files, beside whatever else is in it (a config, a tokenizer). They are written aside,
/// under hidden names, and take their own names when all are on the disk; files of earlier saves of the same kind go.
/// Whoever opens the folder in between, or after a kill, finds the older model or the newer one; where both have
/// shards of the same names there is an instant without an index, in which it finds none, and never a mixture.
class WeightFolder {
 public:
  WeightFolder(std::filesystem::path folder, std::string id, WeightFileNames names);

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path aside(const std::string& name) const;

  // By one rank:
  void begin() const;  ///< makes the folder
  /// `files` lie aside and are durable, and so does the index where `has_index`.
  void publish(const std::vector<std::string>& files, bool has_index) const;
  void abandon(const std::vector<std::string>& files) const noexcept;  ///< removes what lies aside

 private:
  void move_in(const std::string& name) const;
  void remove_others(const std::vector<std::string>& files, bool has_index) const;

  std::filesystem::path folder_;
  std::string id_;
  WeightFileNames names_;
};

}  // namespace hortator::io
