// Sizes of modules, tied parameters, and device maps.
#include <algorithm>
#include <hortator/error.hpp>
#include <optional>

#include "bigmodel/device_map.hpp"
#include "bigmodel/max_memory.hpp"
#include "bigmodel/module_tree.hpp"
#include "bigmodel/no_split_classes.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "replay.hpp"
#include "sizes.hpp"
#include "tensors.hpp"
#include "trees.hpp"

namespace hortator::golden {
namespace {

constexpr std::initializer_list<const char*> kinds = {"sizes", "tied", "device_map", "balanced", "clean"};

bool is_infer_auto_device_map(const json& file) {
  if (!file.contains("models")) return false;
  const auto& kind = file.at("cases").front().value("kind", "");
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

SizeOptions size_options(const json& one) {
  SizeOptions options;
  if (one.contains("dtype") && !one["dtype"].is_null()) options.dtype = scalar_type(one["dtype"]);
  if (one.contains("special_dtypes") && !one["special_dtypes"].is_null()) {
    for (const auto& [name, type] : one["special_dtypes"].items())
      options.special_dtypes.emplace(name, scalar_type(type));
  }
  return options;
}

DevicePlacement place_of(const json& place) {
  return place.is_number() ? DevicePlacement::cuda(place) : DevicePlacement::parse(place.get<std::string>());
}

json to_json(const DevicePlacement& place) { return place.is_cuda() ? json(place.index()) : json(text::concat(place)); }

MaxMemory memory_of(const json& pairs) {
  MaxMemory memory;
  for (const auto& pair : pairs) {
    memory.emplace(place_of(pair.at(0)), pair.at(1).is_string()
                                             ? static_cast<Bytes>(units::parse_bytes(pair.at(1).get<std::string>()))
                                             : pair.at(1).get<Bytes>());
  }
  return memory;
}

json to_json(const MaxMemory& memory) {
  auto pairs = json::array();
  for (const auto& [place, bytes] : memory) pairs.push_back({to_json(place), bytes});
  return pairs;
}

DeviceMap map_of(const json& pairs) {
  DeviceMap map;
  for (const auto& pair : pairs) map.emplace(pair.at(0), place_of(pair.at(1)));
  return map;
}

json to_json(const DeviceMap& map) {
  auto pairs = json::array();
  for (const auto& [name, place] : map) pairs.push_back({name, to_json(place)});
  return pairs;
}

Outcome judge_sizes(const json& one, const json& file) {
  const bigmodel::ModuleSizes sizes(model_of(one, file), size_options(one));
  auto ours = json::object();
  for (const auto& [name, bytes] : sizes.all()) ours[name] = bytes;
  return compare("the sizes", ours, one.at("sizes"));
}

Outcome judge_tied(const json& one, const json& file) {
  auto ours = bigmodel::tied_groups(model_of(one, file));
  auto theirs = one.at("groups").get<bigmodel::TiedGroups>();
  std::sort(ours.begin(), ours.end());
  std::sort(theirs.begin(), theirs.end());
  return ours == theirs ? equal() : differs(text::concat(ours.size(), " groups are tied, not ", one.at("groups")));
}

DeviceMapOptions map_options(const json& one) {
  return {.no_split_module_classes = class_names(one.at("no_split")),
          .sizes = size_options(one),
          .clean_result = one.value("clean", 1) != 0,
          .fallback_allocation = one.value("fallback", 0) != 0};
}

// Returns a message if the map exceeds the memory of a device. Tied parameters count on their first device.
std::string overfull(const DeviceMap& map, const bigmodel::ModuleTree& tree, const DeviceMapOptions& options) {
  const bigmodel::ModuleSizes sizes(tree, options.sizes);
  std::map<DevicePlacement, Bytes> used;
  for (const auto& [name, place] : map) {
    used[place] += sizes.of(name);
  }
  for (const auto& [place, bytes] : used) {
    const auto limit = options.max_memory.find(place);
    if (!place.is_disk() && (limit == options.max_memory.end() || bytes > limit->second))
      return text::concat(place, " has ", bytes, " bytes");
  }
  return {};
}

void collect_inner_buffers(const bigmodel::TreeNode& node, const std::string& path, std::vector<std::string>& names) {
  for (const auto& buffer : node.buffers) {
    if (!path.empty() && !node.children.empty()) names.push_back(bigmodel::joined(path, buffer.name));
  }
  for (const auto& child : node.children) collect_inner_buffers(child, bigmodel::joined(path, child.name), names);
}

// Whether the map splits a module that has buffers of its own.
bool splits_buffers(const bigmodel::ModuleTree& tree, DeviceMapOptions options) {
  options.clean_result = false;
  const auto map = bigmodel::infer_device_map(tree, options);
  std::vector<std::string> buffers;
  collect_inner_buffers(tree.root, "", buffers);
  return std::any_of(buffers.begin(), buffers.end(), [&](const std::string& name) { return map.contains(name); });
}

// Accelerate loses buffers that belong directly to a module that is split: they have no device, or get one uncounted
// when the parts of the module are merged. In Hortator they have a device and are counted. Their size may move later
// modules to a later device, but none to an earlier one.
Outcome judge_map_with_buffers(const DeviceMap& ours, const DeviceMap& theirs, const bigmodel::ModuleTree& tree,
                               const DeviceMapOptions& options) {
  const auto faults = bigmodel::faults_of(ours, tree);
  if (!faults.unplaced.empty()) return differs("no device for " + text::join(faults.unplaced));
  const auto full = overfull(ours, tree, options);
  if (!full.empty()) return differs("a device is too full: " + full);
  for (const auto& [name, own] : ours) {
    const auto* place = bigmodel::placement_in(theirs, name);
    if (place != nullptr && own < *place && !options.fallback_allocation)
      return differs(text::concat(name, " is on ", own, ", before ", *place, ", which Accelerate has"));
  }
  return on_purpose("buffers_of_split_modules_have_places");
}

Outcome judge_map(const json& one, const bigmodel::ModuleTree& tree, const DeviceMapOptions& options) {
  const auto ours = bigmodel::infer_device_map(tree, options);
  const auto theirs = map_of(one.at("device_map"));
  const auto same = compare("the map", to_json(ours), to_json(theirs));
  if (same.difference.empty() || !splits_buffers(tree, options)) return same;
  return judge_map_with_buffers(ours, theirs, tree, options);
}

// Accelerate accepts sizes that Hortator rejects. Returns the rule for a rejected size in `memory`; nothing if none is
// rejected.
std::optional<Outcome> judge_refused_memory(const json& memory) {
  try {
    memory_of(memory);
    return {};
  } catch (const UsageError&) {
    for (const auto& pair : memory) {
      const auto* rule = pair.at(1).is_string() ? rule_that_refuses(pair.at(1).get<std::string>()) : nullptr;
      if (rule != nullptr) return on_purpose(rule);
    }
    throw;
  }
}

Outcome judge_device_map(const json& one, const json& file) {
  auto options = map_options(one);
  options.max_memory = memory_of(one.at("max_memory"));
  return judge_map(one, model_of(one, file), options);
}

Outcome judge_balanced(const json& one, const json& file) {
  const auto tree = model_of(one, file);
  auto options = map_options(one);
  options.max_memory = bigmodel::balanced_memory(tree, {.max_memory = memory_of(one.at("max_memory")),
                                                        .no_split_module_classes = options.no_split_module_classes,
                                                        .sizes = options.sizes,
                                                        .low_zero = one.at("low_zero").get<int>() != 0});
  const auto same = compare("the balance", to_json(options.max_memory), to_json(memory_of(one.at("balanced"))));
  return same.difference.empty() ? judge_map(one, tree, options) : same;
}

Outcome judge_clean(const json& one) {
  return compare("the map", to_json(bigmodel::cleaned(map_of(one.at("device_map")), one.at("module_name"))),
                 to_json(map_of(one.at("out"))));
}

Outcome judge_infer_auto_device_map(const json& one, const json& file) {
  const auto kind = one_of(one, "kind", kinds);
  if (kind == "sizes") return judge_sizes(one, file);
  if (one.contains("max_memory")) {
    if (const auto refused = judge_refused_memory(one.at("max_memory"))) return *refused;
  }
  if (kind == "tied") return judge_tied(one, file);
  if (kind == "device_map") return judge_device_map(one, file);
  return kind == "balanced" ? judge_balanced(one, file) : judge_clean(one);
}

}  // namespace

Format infer_auto_device_map() {
  return {.name = "infer_auto_device_map",
          .recognises = is_infer_auto_device_map,
          .world = [](const json&) { return 0; },
          .judge = judge_infer_auto_device_map};
}

}  // namespace hortator::golden
