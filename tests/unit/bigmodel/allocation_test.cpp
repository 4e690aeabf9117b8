// The rule of device maps against what must hold of every map, on many small trees.
#include <algorithm>
#include <cmath>
#include <map>

#include "bigmodel/device_map.hpp"
#include "bigmodel/max_memory.hpp"
#include "bigmodel/module_tree.hpp"
#include "bigmodel/no_split_classes.hpp"
#include "core/text/text.hpp"
#include "support/catch.hpp"
#include "trees.hpp"

using namespace hortator;
using namespace hortator::bigmodel;

namespace {

void collect_tensors(const TreeNode& node, const std::string& path, std::vector<std::string>& names) {
  for (const auto* tensors : {&node.parameters, &node.buffers}) {
    for (const auto& tensor : *tensors) names.push_back(joined(path, tensor.name));
  }
  for (const auto& child : node.children) collect_tensors(child, joined(path, child.name), names);
}

void collect_blocks(const TreeNode& node, const std::string& path, std::vector<std::string>& names) {
  if (node.type == "Block" && !path.empty()) names.push_back(path);
  for (const auto& child : node.children) collect_blocks(child, joined(path, child.name), names);
}

std::string shown(const DeviceMap& map) {
  std::string line;
  for (const auto& [name, placement] : map) line += text::concat(name, "=", placement, " ");
  return line;
}

/// What is wrong with a map; empty: nothing.
std::string problem_of(const ModuleTree& tree, const DeviceMapOptions& options, const DeviceMap& map) {
  const ModuleSizes sizes(tree, options.sizes);
  const auto faults = faults_of(map, tree);
  if (!faults.unplaced.empty()) return "no placement for " + text::join(faults.unplaced);
  if (!faults.unknown.empty()) return "placements for " + text::join(faults.unknown);
  std::vector<std::string> tensors;
  collect_tensors(tree.root, "", tensors);
  std::map<DevicePlacement, Bytes> used;
  Bytes sum = 0;
  for (const auto& name : tensors) {
    used[*placement_in(map, name)] += tree.ties.contains(name) ? 0 : sizes.of(name);
    sum += tree.ties.contains(name) ? 0 : sizes.of(name);
  }
  if (sum != sizes.total()) return text::concat("the tensors are ", sum, " bytes, the whole ", sizes.total());
  for (const auto& [placement, bytes] : used) {
    const auto limit = options.max_memory.find(placement);
    if (!placement.is_disk() && (limit == options.max_memory.end() || bytes > limit->second))
      return text::concat(placement, " holds ", bytes);
  }
  for (const auto& [alias, first] : tree.ties) {
    if (*placement_in(map, alias) != *placement_in(map, first)) return text::concat(alias, " is apart from ", first);
  }
  std::vector<std::string> blocks;
  collect_blocks(tree.root, "", blocks);
  for (const auto& block : options.no_split_module_classes.empty() ? std::vector<std::string>{} : blocks) {
    std::vector<DevicePlacement> placements;
    for (const auto& name : tensors) {
      if (is_within(name, block)) placements.push_back(*placement_in(map, name));
    }
    if (!placements.empty() &&
        std::count(placements.begin(), placements.end(), placements[0]) != std::ssize(placements))
      return block + " is split";
  }
  return {};
}

DeviceMapOptions random_options(test::RandomTrees& random, Bytes total) {
  const auto some = [&] { return std::floor(total * random.number(0, 12) / 10); };
  DeviceMapOptions options{.clean_result = random.number(0, 1) == 1, .fallback_allocation = random.number(0, 2) == 0};
  for (int device = 0; device < random.number(0, 3); ++device)
    options.max_memory.emplace(DevicePlacement::cuda(device), some());
  if (random.number(0, 3) > 0) options.max_memory.emplace(DevicePlacement::cpu(), some());
  if (random.number(0, 2) == 0) options.no_split_module_classes = {"Block"};
  return options;
}

}  // namespace

TEST_CASE("every tensor has one placement, limits hold, ties and unsplit modules stay together") {
  int on_devices = 0, on_disk = 0, split = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    test::RandomTrees random(seed);
    const auto tree = random.tree();
    const auto options = random_options(random, ModuleSizes(tree, {}).total());
    const auto map = infer_device_map(tree, options);
    const auto problem = problem_of(tree, options, map);
    INFO("seed " << seed << ": " << shown(map));
    REQUIRE(problem == "");
    for (const auto& [name, placement] : map) ++(placement.is_disk() ? on_disk : on_devices);
    split += map.size() > 1 ? 1 : 0;
  }
  // or nothing of it was tried
  CHECK(on_devices > 1000);
  CHECK(on_disk > 1000);
  CHECK(split > 1000);
}

TEST_CASE("a cleaned map gives every tensor the same placement") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    test::RandomTrees random(seed);
    const auto tree = random.tree();
    auto options = random_options(random, ModuleSizes(tree, {}).total());
    options.clean_result = false;
    const auto map = infer_device_map(tree, options);
    const auto clean = cleaned(map);
    std::vector<std::string> tensors;
    collect_tensors(tree.root, "", tensors);
    CHECK(clean.size() <= map.size());
    for (const auto& name : tensors) CHECK(*placement_in(map, name) == *placement_in(clean, name));
  }
}

TEST_CASE("only the first device reserves space for the largest layer still to be placed") {
  ModuleTree tree;
  for (int i = 0; i < 4; ++i) tree.root.children.push_back(test::layer(std::to_string(i), 25));  // 100 bytes each
  const auto map = infer_device_map(
      tree,
      {.max_memory = {{DevicePlacement::cuda(0), 200}, {DevicePlacement::cuda(1), 200}, {DevicePlacement::cpu(), 150}},
       .clean_result = false});
  CHECK(map == DeviceMap{{"0", DevicePlacement::cuda(0)},
                         {"1", DevicePlacement::cuda(1)},
                         {"2", DevicePlacement::cuda(1)},
                         {"3", DevicePlacement::cpu()}});
}

TEST_CASE("with fallback_allocation a later part fills a device that would stay empty") {
  ModuleTree tree;
  tree.root.children = {test::layer("big", 100), test::layer("middle", 30), test::layer("small", 5)};
  DeviceMapOptions options{.max_memory = {{DevicePlacement::cuda(0), 450}, {DevicePlacement::cpu(), 10000}},
                           .clean_result = false};
  const auto cpu = DevicePlacement::cpu();
  CHECK(infer_device_map(tree, options) == DeviceMap{{"big", cpu}, {"middle", cpu}, {"small", cpu}});
  options.fallback_allocation = true;
  CHECK(infer_device_map(tree, options) ==
        DeviceMap{{"big", cpu}, {"middle", cpu}, {"small", DevicePlacement::cuda(0)}});
}

TEST_CASE("tied modules are placed together, transitively, or split until they fit") {
  ModuleTree tree;
  tree.root.children = {test::layer("a", 10), test::layer("b", 10), test::layer("c", 10), test::layer("d", 10)};
  tree.root.children[1].parameters.push_back(test::tensor("second", 10));
  tree.root.children[3].parameters.push_back(test::tensor("second", 10));
  tree.ties = {{"b.weight", "a.weight"}, {"d.second", "b.second"}};
  const DeviceMapOptions options{.max_memory = {{DevicePlacement::cuda(0), 160}, {DevicePlacement::cpu(), 1000}},
                                 .clean_result = false};
  const auto map = infer_device_map(tree, options);
  CHECK(map.at("a") == map.at("b"));
  CHECK(map.at("b") == map.at("d"));
}
