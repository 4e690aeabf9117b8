#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace hortator::test {

/// Returns all bytes of a file; empty if it does not exist.
inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return std::move(content).str();
}

/// A temporary folder of this process: does not exist at first (the test creates it), and is removed at the end.
struct OwnFolder {
  explicit OwnFolder(const std::string& name)
      : path(std::filesystem::temp_directory_path() / ("hortator-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path);
  }
  ~OwnFolder() { std::filesystem::remove_all(path); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::filesystem::path path;
};

}  // namespace hortator::test
