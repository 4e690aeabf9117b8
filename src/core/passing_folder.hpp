#pragma once

#include <filesystem>
#include <string>

namespace hortator::core {

/// A folder that is removed with its contents.
class PassingFolder {
 public:
  /// Makes it in `below`, with `name` and a suffix of its own, for this user alone. Throws Error if that fails.
  PassingFolder(const std::filesystem::path& below, const std::string& name);
  ~PassingFolder();
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace hortator::core
