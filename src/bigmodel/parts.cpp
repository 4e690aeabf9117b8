#include "bigmodel/parts.hpp"

#include <algorithm>

namespace hortator::bigmodel {
namespace {

void visit(const Part& part, const ModuleSizes& sizes, const WholeClasses& whole, LargestLayer& largest) {
  if (whole.splits(part)) {
    for (const auto& child : part.node->children)
      visit({.name = joined(part.name, child.name), .node = &child}, sizes, whole, largest);
    return;
  }
  const auto bytes = sizes.of(part.name);
  if (bytes > largest.bytes) largest = {.bytes = bytes};
  if (bytes == largest.bytes) largest.names.push_back(part.name);
}

// A class of the user's is called Block in code, and BlockImpl where it is defined.
std::string without_suffix(std::string name) {
  constexpr std::string_view suffix = "Impl";
  if (name.ends_with(suffix) && name.size() > suffix.size()) name.erase(name.size() - suffix.size());
  return name;
}

}  // namespace

std::vector<Part> parts_of(const TreeNode& node, const std::string& path) {
  std::vector<Part> parts;
  for (const auto& parameter : node.parameters) parts.push_back({.name = joined(path, parameter.name)});
  for (const auto& child : node.children) parts.push_back({.name = joined(path, child.name), .node = &child});
  for (const auto& buffer : node.buffers) parts.push_back({.name = joined(path, buffer.name)});
  return parts;
}

WholeClasses::WholeClasses(const std::vector<std::string>& names) {
  for (const auto& name : names) names_.push_back(without_suffix(name));
}

bool WholeClasses::keeps_whole(const TreeNode& node) const {
  return std::find(names_.begin(), names_.end(), node.type) != names_.end();
}

bool WholeClasses::splits(const Part& part) const {
  return part.node != nullptr && !part.node->children.empty() && !keeps_whole(*part.node);
}

LargestLayer largest_layer(const std::vector<Part>& parts, const ModuleSizes& sizes, const WholeClasses& whole) {
  LargestLayer largest;
  for (const auto& part : parts) visit(part, sizes, whole, largest);
  return largest;
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
