#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

/// Files for the tests of data sets.
namespace hortator::data_test {

inline std::filesystem::path write(const std::string& name, const std::string& bytes) {
  const std::filesystem::path path(name);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// The bytes of values in memory.
template <typename Number>
std::string raw(const std::vector<Number>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number)};
}

/// Calls of a batch's reading with a list of samples.
using Samples = std::vector<std::int64_t>;

}  // namespace hortator::data_test
