#include "bigmodel/no_split_classes.hpp"

#include <algorithm>

namespace hortator::bigmodel {
namespace {

void visit(const ModelPart& part, const ModuleSizes& sizes, const NoSplitClasses& whole, LargestLayer& largest) {
  if (whole.can_split(part)) {
    for (const auto& child : part.node->children)
      visit({.name = joined(part.name, child.name), .node = &child}, sizes, whole, largest);
    return;
  }
  const auto bytes = sizes.of(part.name);
  if (bytes > largest.bytes) largest = {.bytes = bytes};
  if (bytes == largest.bytes) largest.names.push_back(part.name);
}

// Users write Block in code; TORCH_MODULE's class is BlockImpl.
std::string without_suffix(std::string name) {
  constexpr std::string_view suffix = "Impl";
  if (name.ends_with(suffix) && name.size() > suffix.size()) name.erase(name.size() - suffix.size());
  return name;
}

}  // namespace

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
    std::ranges::sort(group);
    sorted.push_back(std::move(group));
  }
  return sorted;
}

NoSplitClasses::NoSplitClasses(const std::vector<std::string>& names) {
  for (const auto& name : names) names_.push_back(without_suffix(name));
}

bool NoSplitClasses::keeps_whole(const TreeNode& node) const {
  return std::ranges::find(names_, node.type) != names_.end();
}

bool NoSplitClasses::can_split(const ModelPart& part) const {
  return part.node != nullptr && !part.node->children.empty() && !keeps_whole(*part.node);
}

LargestLayer largest_layer(const std::vector<ModelPart>& parts, const ModuleSizes& sizes, const NoSplitClasses& whole) {
  LargestLayer largest;
  for (const auto& part : parts) visit(part, sizes, whole, largest);
  return largest;
}

}  // namespace hortator::bigmodel
