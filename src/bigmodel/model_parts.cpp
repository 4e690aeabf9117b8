#include "bigmodel/model_parts.hpp"

#include <algorithm>

namespace hortator::bigmodel {
std::vector<ModelPart> parts_of(const TreeNode& node, const std::string& path) {
  std::vector<ModelPart> parts;
  for (const auto& parameter : node.parameters) parts.push_back({.name = joined(path, parameter.name)});
  for (const auto& child : node.children) parts.push_back({.name = joined(path, child.name), .node = &child});
  for (const auto& buffer : node.buffers) parts.push_back({.name = joined(path, buffer.name)});
  return parts;
}

TiedGroups tied_groups(const ModuleTree& tree) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const auto& [alias, first] : tree.ties) {
    auto& group = groups[first];
    if (group.empty()) group.push_back(first);
    group.push_back(alias);
  }
  TiedGroups sorted;
  for (auto& [first, group] : groups) {
    std::sort(group.begin(), group.end());
    sorted.push_back(std::move(group));
  }
  return sorted;
}

}  // namespace hortator::bigmodel
