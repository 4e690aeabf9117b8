#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hortator::simulation {

/// A value of a settings file with its line: text, a list, or a map in the file's order.
struct SettingNode {
  enum class Shape { empty, text, list, map };

  Shape shape = Shape::empty;
  int line = 0;
  std::string text = "";
  std::vector<SettingNode> items = {};                            ///< of a list
  std::vector<std::pair<std::string, SettingNode>> entries = {};  ///< of a map
};

/// Parses YAML. Throws UsageError with `file` and the line for text that is not valid YAML, or has a key twice.
SettingNode parse_settings(const std::string& yaml, const std::string& file);

}  // namespace hortator::simulation
