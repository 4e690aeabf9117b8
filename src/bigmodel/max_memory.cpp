#include "bigmodel/max_memory.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>
#include <set>
#include <unordered_set>

#include "bigmodel/module_tree.hpp"
#include "bigmodel/no_split_classes.hpp"
#include "machine/device/cuda.hpp"
#include "machine/memory/memory_limit.hpp"
#include "runtime/world.hpp"

namespace hortator {

namespace bigmodel {

MaxMemory max_memory(const NodeMemory& node) {
  MaxMemory memory;
  for (const auto& [device, bytes] : node.free_by_device) {
    if (node.local_size == 1 || device == node.own_device)
      memory.emplace(DevicePlacement::cuda(device), static_cast<Bytes>(bytes));
  }
  memory.emplace(DevicePlacement::cpu(), static_cast<Bytes>(node.host / static_cast<std::size_t>(node.local_size)));
  return memory;
}

}  // namespace bigmodel

MaxMemory get_max_memory(const State& state) {
  const auto host = machine::available_memory();
  if (!host) {
    throw Error({.what = "The free memory of this node is unknown",
                 .why = "/proc/meminfo cannot be read, and a device map needs it",
                 .hint = "set max_memory yourself"});
  }
  bigmodel::NodeMemory node{.host = *host, .local_size = state.world().topology().local_size};
  if (state.device().is_cuda()) node.own_device = state.device().index();
  for (int device = 0; state.device().is_cuda() && device < machine::visible_device_count(); ++device) {
    if (node.local_size == 1 || device == node.own_device)
      node.free_by_device.emplace(device, machine::free_memory(device));
  }
  return bigmodel::max_memory(node);
}

}  // namespace hortator

namespace hortator::bigmodel {
namespace {

std::vector<DevicePlacement> usable_devices(const MaxMemory& memory) {
  std::vector<DevicePlacement> devices;
  for (const auto& [placement, bytes] : memory) {
    if (placement.is_cuda() && bytes > 0) devices.push_back(placement);
  }
  return devices;
}

void collect_types(const TreeNode& node, const std::string& path, std::map<std::string, std::string>& types) {
  types.emplace(path, node.type);
  for (const auto& child : node.children) collect_types(child, joined(path, child.name), types);
}

// Only the first module of each class counts, in the order of the sizes. Accelerate does the same.
Bytes largest_whole_module(const ModuleTree& tree, const ModuleSizes& sizes, const NoSplitClasses& whole) {
  std::map<std::string, std::string> types;
  collect_types(tree.root, "", types);
  std::set<std::string> seen;
  Bytes largest = 0;
  for (const auto& [name, bytes] : sizes.all()) {
    const auto type = types.find(name);
    if (name.empty() || type == types.end()) continue;
    const auto& names = whole.names();
    if (std::ranges::find(names, type->second) == names.end()) continue;
    if (seen.insert(type->second).second) largest = std::max(largest, bytes);
  }
  return largest;
}

using Names = std::vector<std::pair<std::string, Bytes>>;

// Names that contain no other name. Names without a dot have no parent here.
std::unordered_set<std::string> leaves_of(const Names& names) {
  std::unordered_set<std::string> parents;
  for (const auto& [name, bytes] : names) {
    const auto dot = name.rfind('.');
    if (dot != std::string::npos) parents.insert(name.substr(0, dot));
  }
  std::unordered_set<std::string> leaves;
  for (const auto& [name, bytes] : names) {
    if (!name.empty() && !parents.contains(name)) leaves.insert(name);
  }
  return leaves;
}

// The leaves are tensors. Without them, the leaves are the innermost modules.
Bytes mean_of_innermost_modules(const ModuleSizes& sizes) {
  auto names = sizes.all();
  const auto tensors = leaves_of(names);
  std::erase_if(names, [&](const auto& item) { return tensors.contains(item.first); });
  const auto modules = leaves_of(names);
  Bytes sum = 0;
  for (const auto& [name, bytes] : names) sum += modules.contains(name) ? bytes : 0;
  return std::trunc(sum / static_cast<Bytes>(std::max<std::size_t>(modules.size(), 1)));
}

}  // namespace

MaxMemory balanced_memory(const ModuleTree& tree, const BalanceOptions& options) {
  auto memory = options.max_memory;
  const auto devices = usable_devices(memory);
  if (devices.empty()) return memory;
  const bool low_zero = options.low_zero && devices.size() > 1;  // other devices must hold the remainder

  const ModuleSizes sizes(tree, options.sizes);
  const NoSplitClasses whole(options.no_split_module_classes);
  const auto reserve =
      std::trunc(1.25 * std::max(largest_whole_module(tree, sizes, whole), mean_of_innermost_modules(sizes)));
  const auto sharing = static_cast<Bytes>(devices.size() - (low_zero ? 1 : 0));
  const auto share = std::floor(sizes.total() / sharing) + reserve;

  // The last device keeps its whole limit, in case the reserve is too small.
  const auto zero = DevicePlacement::cuda(0);
  for (std::size_t i = 0; i + 1 < devices.size(); ++i) {
    if (!low_zero || devices[i] != zero) memory[devices[i]] = std::min(share, memory[devices[i]]);
  }
  if (low_zero && memory.contains(zero)) {
    Bytes others = 0;
    for (const auto& device : devices) others += device == zero ? 0 : memory[device];
    memory[zero] = std::min(std::max(Bytes{0}, sizes.total() - others), memory[zero]);
  }
  return memory;
}

}  // namespace hortator::bigmodel
