#include "bigmodel/device_map.hpp"

#include <algorithm>
#include <set>

namespace hortator::bigmodel {
namespace {

// "layers.1" of "layers.1.weight" below "layers".
std::string child_of(const std::string& name, const std::string& below) {
  return name.substr(0, name.find('.', below.empty() ? 0 : below.size() + 1));
}

bool is_below(const std::string& name, const std::string& module) { return is_within(name, module) && name != module; }

void clean_below(DeviceMap& map, const std::string& module) {
  std::vector<std::string> names;
  std::set<Place> places;
  for (const auto& [name, place] : map) {
    if (!module.empty() && !is_below(name, module)) continue;
    names.push_back(name);
    places.insert(place);
  }
  if (places.size() == 1 && names.size() > 1) {
    for (const auto& name : names) map.erase(name);
    map.insert_or_assign(module, *places.begin());
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

const Place* place_in(const DeviceMap& map, const std::string& name) {
  for (auto around = name;;) {
    if (const auto found = map.find(around); found != map.end()) return &found->second;
    if (around.empty()) return nullptr;
    const auto dot = around.rfind('.');
    around.erase(dot == std::string::npos ? 0 : dot);
  }
}

MapFaults faults_of(const DeviceMap& map, const ModuleTree& tree) {
  TreeNames names;
  collect(tree.root, "", names);
  MapFaults faults;
  for (const auto& name : names.tensors) {
    if (place_in(map, name) == nullptr) faults.without_place.push_back(name);
  }
  for (const auto& [name, place] : map) {
    if (!names.all.contains(name)) faults.unknown.push_back(name);
  }
  return faults;
}

}  // namespace hortator::bigmodel
