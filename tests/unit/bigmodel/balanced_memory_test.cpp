#include "bigmodel/max_memory.hpp"

#include "bigmodel/module_tree.hpp"
#include "support/catch.hpp"
#include "trees.hpp"

using namespace hortator;
using namespace hortator::bigmodel;

namespace {

ModuleTree layers(int count) {
  ModuleTree tree;
  for (int i = 0; i < count; ++i) tree.root.children.push_back(test::layer(std::to_string(i), 25));
  return tree;
}

}  // namespace

TEST_CASE("each device but the last may hold its share and 1.25 layers") {
  const MaxMemory memory = {
      {DevicePlacement::cuda(0), 1000}, {DevicePlacement::cuda(1), 1000}, {DevicePlacement::cpu(), 5000}};
  const auto balanced = balanced_memory(layers(4), {.max_memory = memory});
  CHECK(balanced.at(DevicePlacement::cuda(0)) == 200 + 125);
  CHECK(balanced.at(DevicePlacement::cuda(1)) == 1000);
  CHECK(balanced.at(DevicePlacement::cpu()) == 5000);
}

TEST_CASE("low_zero gives the first device only what the others cannot hold") {
  const auto tree = layers(10);
  const auto spare = balanced_memory(
      tree,
      {.max_memory = {{DevicePlacement::cuda(0), 1000}, {DevicePlacement::cuda(1), 2000}, {DevicePlacement::cpu(), 0}},
       .low_zero = true});
  CHECK(spare.at(DevicePlacement::cuda(0)) == 0);
  const auto scarce = balanced_memory(
      tree,
      {.max_memory = {{DevicePlacement::cuda(0), 1000}, {DevicePlacement::cuda(1), 700}, {DevicePlacement::cpu(), 0}},
       .low_zero = true});
  CHECK(scarce.at(DevicePlacement::cuda(0)) == 300);
}

TEST_CASE("balancing never raises a limit, and changes CUDA devices only") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    test::RandomTrees random(seed);
    const auto tree = random.tree();
    BalanceOptions options{.low_zero = random.number(0, 1) == 1};
    for (int device = 0; device < random.number(0, 4); ++device)
      options.max_memory.emplace(DevicePlacement::cuda(device), random.number(0, 400));
    options.max_memory.emplace(DevicePlacement::cpu(), random.number(0, 400));
    const auto balanced = balanced_memory(tree, options);
    REQUIRE(balanced.size() == options.max_memory.size());
    for (const auto& [placement, bytes] : balanced) {
      CHECK(bytes >= 0);
      CHECK(bytes <= options.max_memory.at(placement));
      if (placement.is_cpu()) CHECK(bytes == options.max_memory.at(placement));
    }
  }
}
