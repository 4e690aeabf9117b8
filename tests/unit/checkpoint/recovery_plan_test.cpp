#include "checkpoint/memory/recovery_plan.hpp"

#include <algorithm>

#include "support/catch.hpp"

using namespace hortator;
using checkpoint::HeldGeneration;
using checkpoint::NodeInventory;

namespace {

HeldGeneration held(std::int64_t number, unsigned files, std::size_t count, std::uint32_t manifest = 7) {
  HeldGeneration one{.number = number, .updates = 10 * number, .manifest = manifest};
  for (std::size_t file = 0; file < count; ++file) {
    one.files.push_back((files >> file & 1U) != 0);
    one.bytes.push_back(100 + static_cast<std::int64_t>(file));
  }
  return one;
}

/// Each node's files as bits; `absent`: the node has nothing of the checkpoint.
constexpr unsigned absent = 1U << 31;

void check_every_transfer(const std::vector<unsigned>& nodes, std::size_t files) {
  std::vector<NodeInventory> inventories;
  unsigned together = 0;
  for (const auto bits : nodes) {
    inventories.push_back(bits == absent ? NodeInventory{} : NodeInventory{held(3, bits, files)});
    together |= bits == absent ? 0 : bits;
  }
  const auto found = checkpoint::recoveries(inventories);
  const bool is_whole = together == (1U << files) - 1 && std::ranges::any_of(nodes, [](auto b) { return b != absent; });
  CAPTURE(nodes, files);
  REQUIRE(found.size() == (is_whole ? 1 : 0));
  if (!is_whole) return;
  auto after = nodes;
  for (const auto& transfer : found[0].transfers) {
    const auto bit = 1U << transfer.file;
    REQUIRE(nodes[static_cast<std::size_t>(transfer.from)] != absent);
    REQUIRE((nodes[static_cast<std::size_t>(transfer.from)] & bit) != 0);
    REQUIRE(transfer.bytes == 100 + static_cast<std::int64_t>(transfer.file));
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const bool had = nodes[node] != absent && (nodes[node] & bit) != 0;
      REQUIRE(transfer.to[node] == !had);
      if (transfer.to[node]) after[node] = (after[node] == absent ? 0 : after[node]) | bit;
    }
  }
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    REQUIRE(after[node] == (1U << files) - 1);
    REQUIRE(found[0].manifest_to[node] == (nodes[node] == absent));
  }
  REQUIRE(nodes[static_cast<std::size_t>(found[0].manifest_from)] != absent);
}

}  // namespace

TEST_CASE(
    "a checkpoint in memory is recovered exactly if the nodes together have all files, and each gets what it misses",
    "[serial]") {
  for (std::size_t files = 1; files <= 3; ++files) {
    std::vector<unsigned> choices = {absent};
    for (unsigned bits = 0; bits < 1U << files; ++bits) choices.push_back(bits);
    for (const auto a : choices) {
      check_every_transfer({a}, files);
      for (const auto b : choices) {
        check_every_transfer({a, b}, files);
        for (const auto c : choices) check_every_transfer({a, b, c}, files);
      }
    }
  }
}

TEST_CASE(
    "the newest whole checkpoint in memory comes first, and one under the same number of another manifest is left out",
    "[serial]") {
  const std::vector<NodeInventory> nodes = {{held(1, 0b01, 2), held(2, 0b11, 2), held(4, 0b01, 2)},
                                            {held(1, 0b10, 2), held(2, 0b11, 2, 8), held(3, 0b01, 2)}};
  const auto found = checkpoint::recoveries(nodes);
  REQUIRE(found.size() == 2);
  CHECK(found[0].number == 2);
  CHECK(found[0].updates == 20);
  CHECK(found[0].manifest_to == std::vector<bool>{false, true});
  CHECK(found[0].missing_bytes(1) == 201);  // its own have another manifest
  CHECK(found[0].missing_bytes(0) == 0);
  CHECK(found[1].number == 1);
  CHECK(checkpoint::recoveries({}).empty());
}

TEST_CASE("an inventory of a node's memory survives packing", "[serial]") {
  const NodeInventory inventory = {held(1, 0b01, 2), held(12, 0b101, 3)};
  CHECK((checkpoint::unpack_inventory(pack(inventory)) == inventory));
  CHECK(checkpoint::unpack_inventory(pack(NodeInventory{})).empty());
}
