#include "bigmodel/device_map.hpp"

#include <algorithm>
#include <set>

namespace hortator::bigmodel {
namespace {

// The child of `below` that contains `name`: "layers.1" for "layers.1.weight" below "layers".
std::string child_of(const std::string& name, const std::string& below) {
  return name.substr(0, name.find('.', below.empty() ? 0 : below.size() + 1));
}

bool is_below(const std::string& name, const std::string& module) { return is_within(name, module) && name != module; }

void clean_below(DeviceMap& map, const std::string& module) {
  std::vector<std::string> names;
  std::set<DevicePlacement> placements;
  for (const auto& [name, placement] : map) {
    if (!module.empty() && !is_below(name, module)) continue;
    names.push_back(name);
    placements.insert(placement);
  }
  if (placements.size() == 1 && names.size() > 1) {
    for (const auto& name : names) map.erase(name);
    map.insert_or_assign(module, *placements.begin());
    return;
  }
  std::set<std::string> children;
  for (const auto& name : names) {
    if (is_below(name, module)) children.insert(child_of(name, module));
  }
  for (const auto& child : children) clean_below(map, child);
}

struct TreeNames {
  std::vector<std::string> tensors = {};
  std::set<std::string> all = {""};
};

void collect(const TreeNode& node, const std::string& path, TreeNames& names) {
  const auto add = [&](const std::string& name) { names.all.insert(joined(path, name)); };
  for (const auto* tensors : {&node.parameters, &node.buffers}) {
    for (const auto& tensor : *tensors) {
      add(tensor.name);
      names.tensors.push_back(joined(path, tensor.name));
    }
  }
  for (const auto& child : node.children) {
    add(child.name);
    collect(child, joined(path, child.name), names);
  }
}

}  // namespace

DeviceMap cleaned(DeviceMap map, const std::string& below) {
  clean_below(map, below);
  return map;
}

const DevicePlacement* placement_in(const DeviceMap& map, const std::string& name) {
  for (auto enclosing = name;;) {
    if (const auto found = map.find(enclosing); found != map.end()) return &found->second;
    if (enclosing.empty()) return nullptr;
    const auto dot = enclosing.rfind('.');
    enclosing.erase(dot == std::string::npos ? 0 : dot);
  }
}

MapFaults faults_of(const DeviceMap& map, const ModuleTree& tree) {
  TreeNames names;
  collect(tree.root, "", names);
  MapFaults faults;
  for (const auto& name : names.tensors) {
    if (placement_in(map, name) == nullptr) faults.unplaced.push_back(name);
  }
  for (const auto& [name, placement] : map) {
    if (!names.all.contains(name)) faults.unknown.push_back(name);
  }
  return faults;
}

}  // namespace hortator::bigmodel
