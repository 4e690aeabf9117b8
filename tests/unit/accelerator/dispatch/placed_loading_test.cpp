// Checkpoints that are loaded into a module whose parts are placed by a device map.
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "unit/accelerator/dispatch/dispatch_fixture.hpp"

namespace hortator {

using test::empty_stack;
using test::is_same;
using test::resident_stack;
using test::side;
using test::some_input;
using test::StoredStack;

namespace {

const DeviceMap two_on_disk = {
    {"", DevicePlacement::cpu()}, {"layer3", DevicePlacement::disk()}, {"layer5.weight", DevicePlacement::disk()}};

/// A folder of this rank.
std::filesystem::path folder_of(const StoredStack& stored) {
  return stored.folder() / ("offload" + std::to_string(stored.state().process_index()));
}

}  // namespace

TEST_CASE("parts on disk are written to the offload folder, from which dispatch_model reads them", "[dispatch]") {
  const StoredStack stored("placed_loading");
  const at::NoGradGuard no_grad;
  for (auto net : {empty_stack(), resident_stack()}) {
    load_checkpoint_in_model(net, stored.folder() / "shards",
                             {.device_map = two_on_disk, .offload_folder = folder_of(stored)});
    net->eval();
    CHECK(is_empty_weight(net->layers[3]->weight));
    CHECK(is_empty_weight(net->layers[5]->weight));
    CHECK_FALSE(is_empty_weight(net->layers[5]->bias));
    CHECK_THROWS_WITH(net->forward(some_input()), ContainsSubstring("dispatch_model"));
    const auto index = nlohmann::json::parse(std::ifstream(folder_of(stored) / "index.json"));
    CHECK(index.size() == 3);
    CHECK(index["layer3.bias"] == nlohmann::json{{"dtype", "float32"}, {"shape", {side}}});
    auto model = dispatch_model(net, two_on_disk, {.offload_folder = folder_of(stored)});
    for (int pass = 0; pass < 2; ++pass) CHECK(is_same(model(some_input()), stored.expected));
    CHECK(model.counters().on_disk == (2 * side * side + side) * 4);
    CHECK(model.counters().pages_read > 0);
    net->layers[3]->weight.add_(1);  // changed parts are written back
    CHECK_FALSE(is_same(model(some_input()), stored.expected));
    model.remove();
    CHECK_FALSE(is_same(net->forward(some_input()), stored.expected));
  }
}

TEST_CASE("a device map and a type place and convert in one go", "[dispatch]") {
  const StoredStack stored("placed_types");
  const at::NoGradGuard no_grad;
  auto net = empty_stack();
  load_checkpoint_in_model(net, stored.weights(),
                           {.dtype = at::kBFloat16, .device_map = two_on_disk, .offload_folder = folder_of(stored)});
  CHECK(net->layers[0]->weight.scalar_type() == at::kBFloat16);
  auto model = dispatch_model(net, two_on_disk, {.offload_folder = folder_of(stored)});
  auto expected = resident_stack();
  expected->to(at::kBFloat16);
  CHECK(is_same(model(some_input().to(at::kBFloat16)), expected->forward(some_input().to(at::kBFloat16))));
}

TEST_CASE("parts with values and parts in the offload folder lie on disk together", "[dispatch]") {
  const StoredStack stored("placed_more");
  const at::NoGradGuard no_grad;
  auto net = empty_stack();
  load_checkpoint_in_model(net, stored.weights(), {.device_map = two_on_disk, .offload_folder = folder_of(stored)});
  auto more_on_disk = two_on_disk;
  more_on_disk.emplace("layer1", DevicePlacement::disk());
  auto model = dispatch_model(net, more_on_disk, {.offload_folder = folder_of(stored)});
  CHECK(is_same(model(some_input()), stored.expected));
  CHECK(model.counters().on_disk == (3 * side * side + 2 * side) * 4);
}

TEST_CASE("what a device map cannot be used for is refused", "[dispatch]") {
  const StoredStack stored("placed_refused");
  auto net = empty_stack();
  CHECK_THROWS_WITH(load_checkpoint_in_model(net, stored.weights(), {.device_map = two_on_disk}),
                    ContainsSubstring("'layer3.weight' is mapped to disk, but no offload folder is given"));
  CHECK_THROWS_WITH(
      load_checkpoint_in_model(net, stored.weights(), {.device_map = {{"layer3", DevicePlacement::cpu()}}}),
      ContainsSubstring("has no entry for layer0.weight"));
  CHECK_THROWS_WITH(load_checkpoint_in_model(net, stored.weights(), {.device_map = {{"", DevicePlacement::cuda(15)}}}),
                    ContainsSubstring("The model is mapped to cuda:15"));
  Accelerator accelerator({.cpu = true});
  CHECK_THROWS_WITH(accelerator.load_checkpoint_in_model(net, stored.weights(), {.device_map = two_on_disk}),
                    ContainsSubstring("got a device_map"));
  load_checkpoint_in_model(net, stored.weights(), {.device_map = two_on_disk, .offload_folder = folder_of(stored)});
  CHECK_THROWS_WITH(dispatch_model(net, two_on_disk, {.offload_folder = stored.folder() / "elsewhere"}),
                    ContainsSubstring("'layer3.weight' has no values"));
}

}  // namespace hortator
