#include "bigmodel/balanced_memory.hpp"

#include "bigmodel/module_sizes.hpp"
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

TEST_CASE("each device but the last may hold its share and a quarter more than a layer") {
  const MaxMemory memory = {{Place::cuda(0), 1000}, {Place::cuda(1), 1000}, {Place::cpu(), 5000}};
  const auto balanced = balanced_memory(layers(4), {.max_memory = memory});
  CHECK(balanced.at(Place::cuda(0)) == 200 + 125);
  CHECK(balanced.at(Place::cuda(1)) == 1000);
  CHECK(balanced.at(Place::cpu()) == 5000);
}

TEST_CASE("low_zero leaves the first device what the others cannot take") {
  const auto tree = layers(10);
  const auto spare = balanced_memory(
      tree, {.max_memory = {{Place::cuda(0), 1000}, {Place::cuda(1), 2000}, {Place::cpu(), 0}}, .low_zero = true});
  CHECK(spare.at(Place::cuda(0)) == 0);
  const auto scarce = balanced_memory(
      tree, {.max_memory = {{Place::cuda(0), 1000}, {Place::cuda(1), 700}, {Place::cpu(), 0}}, .low_zero = true});
  CHECK(scarce.at(Place::cuda(0)) == 300);
}

TEST_CASE("a balance never gives a place more than there is, and touches no others") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    test::RandomTrees random(seed);
    const auto tree = random.tree();
    BalanceOptions options{.low_zero = random.number(0, 1) == 1};
    for (int device = 0; device < random.number(0, 4); ++device)
      options.max_memory.emplace(Place::cuda(device), random.number(0, 400));
    options.max_memory.emplace(Place::cpu(), random.number(0, 400));
    const auto balanced = balanced_memory(tree, options);
    REQUIRE(balanced.size() == options.max_memory.size());
    for (const auto& [place, bytes] : balanced) {
      CHECK(bytes >= 0);
      CHECK(bytes <= options.max_memory.at(place));
      if (place.is_cpu()) CHECK(bytes == options.max_memory.at(place));
    }
  }
}
