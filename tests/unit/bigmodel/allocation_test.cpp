// The rule of device maps against what must hold of every map, on many small trees.
#include <algorithm>
#include <cmath>
#include <map>

#include "bigmodel/balanced_memory.hpp"
#include "bigmodel/device_map.hpp"
#include "bigmodel/module_sizes.hpp"
#include "bigmodel/parts.hpp"
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
  std::string words;
  for (const auto& [name, place] : map) words += text::concat(name, "=", place, " ");
  return words;
}

/// What is wrong with a map; empty: nothing.
std::string problem_of(const ModuleTree& tree, const DeviceMapOptions& options, const DeviceMap& map) {
  const ModuleSizes sizes(tree, options.sizes);
  const auto faults = faults_of(map, tree);
  if (!faults.without_place.empty()) return "no place for " + text::join(faults.without_place);
  if (!faults.unknown.empty()) return "places for " + text::join(faults.unknown);
  std::vector<std::string> tensors;
  collect_tensors(tree.root, "", tensors);
  std::map<Place, Bytes> used;
  Bytes sum = 0;
  for (const auto& name : tensors) {
    used[*place_in(map, name)] += tree.ties.contains(name) ? 0 : sizes.of(name);
    sum += tree.ties.contains(name) ? 0 : sizes.of(name);
  }
  if (sum != sizes.total()) return text::concat("the tensors are ", sum, " bytes, the whole ", sizes.total());
  for (const auto& [place, bytes] : used) {
    const auto limit = options.max_memory.find(place);
    if (!place.is_disk() && (limit == options.max_memory.end() || bytes > limit->second))
      return text::concat(place, " holds ", bytes);
  }
  for (const auto& [alias, first] : tree.ties) {
    if (*place_in(map, alias) != *place_in(map, first)) return text::concat(alias, " is apart from ", first);
  }
  std::vector<std::string> blocks;
  collect_blocks(tree.root, "", blocks);
  for (const auto& block : options.no_split_module_classes.empty() ? std::vector<std::string>{} : blocks) {
    std::vector<Place> places;
    for (const auto& name : tensors) {
      if (is_within(name, block)) places.push_back(*place_in(map, name));
    }
    if (!places.empty() && std::count(places.begin(), places.end(), places[0]) != std::ssize(places))
      return block + " is split";
  }
  return {};
}

DeviceMapOptions random_options(test::RandomTrees& random, Bytes total) {
  const auto some = [&] { return std::floor(total * random.number(0, 12) / 10); };
  DeviceMapOptions options{.clean_result = random.number(0, 1) == 1, .fallback_allocation = random.number(0, 2) == 0};
  for (int device = 0; device < random.number(0, 3); ++device) options.max_memory.emplace(Place::cuda(device), some());
  if (random.number(0, 3) > 0) options.max_memory.emplace(Place::cpu(), some());
  if (random.number(0, 2) == 0) options.no_split_module_classes = {"Block"};
  return options;
}

}  // namespace

TEST_CASE("every tensor has one place, no place holds more than it may, ties and whole modules stay together") {
  int on_devices = 0, on_disk = 0, split = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    test::RandomTrees random(seed);
    const auto tree = random.tree();
    const auto options = random_options(random, ModuleSizes(tree, {}).total());
    const auto map = infer_device_map(tree, options);
    const auto problem = problem_of(tree, options, map);
    INFO("seed " << seed << ": " << shown(map));
    REQUIRE(problem == "");
    for (const auto& [name, place] : map) ++(place.is_disk() ? on_disk : on_devices);
    split += map.size() > 1 ? 1 : 0;
  }
  // or nothing of it was tried
  CHECK(on_devices > 1000);
  CHECK(on_disk > 1000);
  CHECK(split > 1000);
}

TEST_CASE("cleaned and uncleaned maps give every tensor the same place") {
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
    for (const auto& name : tensors) CHECK(*place_in(map, name) == *place_in(clean, name));
  }
}

TEST_CASE("the first device keeps room for the largest layer to come, later devices do not") {
  ModuleTree tree;
  for (int i = 0; i < 4; ++i) tree.root.children.push_back(test::layer(std::to_string(i), 25));  // 100 bytes each
  const auto map = infer_device_map(
      tree, {.max_memory = {{Place::cuda(0), 200}, {Place::cuda(1), 200}, {Place::cpu(), 150}}, .clean_result = false});
  CHECK(map == DeviceMap{{"0", Place::cuda(0)}, {"1", Place::cuda(1)}, {"2", Place::cuda(1)}, {"3", Place::cpu()}});
}

TEST_CASE("with fallback_allocation a later part fills a place that would stay empty") {
  ModuleTree tree;
  tree.root.children = {test::layer("big", 100), test::layer("middle", 30), test::layer("small", 5)};
  DeviceMapOptions options{.max_memory = {{Place::cuda(0), 450}, {Place::cpu(), 10000}}, .clean_result = false};
  const auto cpu = Place::cpu();
  CHECK(infer_device_map(tree, options) == DeviceMap{{"big", cpu}, {"middle", cpu}, {"small", cpu}});
  options.fallback_allocation = true;
  CHECK(infer_device_map(tree, options) == DeviceMap{{"big", cpu}, {"middle", cpu}, {"small", Place::cuda(0)}});
}

TEST_CASE("tied modules go together, partners of partners too, or are split until they do") {
  ModuleTree tree;
  tree.root.children = {test::layer("a", 10), test::layer("b", 10), test::layer("c", 10), test::layer("d", 10)};
  tree.root.children[1].parameters.push_back(test::tensor("second", 10));
  tree.root.children[3].parameters.push_back(test::tensor("second", 10));
  tree.ties = {{"b.weight", "a.weight"}, {"d.second", "b.second"}};
  const DeviceMapOptions options{.max_memory = {{Place::cuda(0), 160}, {Place::cpu(), 1000}}, .clean_result = false};
  const auto map = infer_device_map(tree, options);
  CHECK(map.at("a") == map.at("b"));
  CHECK(map.at("b") == map.at("d"));
}
