#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "support/faults/faults.hpp"

namespace hortator::test {

/// What the disk may still lose after each call of one rank.
class Disk {
 public:
  void follow(const faults::Call& call) {
    const std::filesystem::path path = call.path;
    if (call.what == "write" || call.what == "resize") bytes_.insert(path);
    if (call.what == "create" || call.what == "make") names_.insert(path);
    if (call.what == "sync") flush(path);
    if (call.what == "rename") rename(path, call.to);
    if (call.what == "remove") bytes_.erase(path), names_.erase(path);
  }
  const std::set<std::filesystem::path>& unflushed() const { return bytes_; }
  /// Bytes and names in `folder` that may be lost.
  std::set<std::filesystem::path> loses_of(const std::filesystem::path& folder) const {
    std::set<std::filesystem::path> lost;
    for (const auto* all : {&bytes_, &names_}) {
      for (const auto& path : *all) {
        if (path.string().starts_with(folder.string() + "/")) lost.insert(path);
      }
    }
    return lost;
  }

 private:
  void flush(const std::filesystem::path& path) {
    bytes_.erase(path);
    std::erase_if(names_, [&](const std::filesystem::path& name) { return name.parent_path() == path; });
  }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) {
    const auto moved = [&](const std::set<std::filesystem::path>& all) {
      std::set<std::filesystem::path> now;
      for (const auto& path : all) {
        const bool goes = path == from || path.string().starts_with(from.string() + "/");
        now.insert(goes ? std::filesystem::path(to.string() + path.string().substr(from.string().size())) : path);
      }
      return now;
    };
    bytes_ = moved(bytes_);
    names_ = moved(names_);
    names_.insert(to);
  }

  std::set<std::filesystem::path> bytes_;
  std::set<std::filesystem::path> names_;
};

}  // namespace hortator::test
