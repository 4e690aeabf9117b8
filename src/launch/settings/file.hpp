#pragma once

#include <string>
#include <vector>

#include "launch/settings/settings.hpp"

/// A file of settings, once somebody has parsed it.
namespace hortator::launching {

enum class Shape { scalar, list, map };

/// One key with its value. In a section of the reference's the key is "fsdp_config.fsdp_version".
struct Entry {
  std::string key = "";
  int line = 0;
  Shape shape = Shape::scalar;
  std::vector<std::string> words = {};  ///< of a map "name=value" each; empty for null
  std::vector<int> lines = {};          ///< of the words of lists and maps

  int line_of(std::size_t word) const { return word < lines.size() ? lines[word] : line; }
};

/// A section of the reference's, with an entry for each key in it; ours have none but Kind::variables.
std::vector<Entry> open_sections(const std::vector<Entry>& entries);

/// What a file of ours says. UsageError names file, line, key and the nearest one.
Layer read_settings(const std::vector<Entry>& entries, const std::string& file);

}  // namespace hortator::launching
