#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace hortator::test {

/// All bytes of a file; empty when it is not there.
inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return std::move(content).str();
}

}  // namespace hortator::test
