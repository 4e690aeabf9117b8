// Models with parts on disk: their placement, and that they compute the same as resident ones.
#include "machine/memory/memory_limit.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/dispatch/dispatch_fixture.hpp"

namespace hortator {

using test::empty_stack;
using test::half_in_memory;
using test::half_of_stack;
using test::is_same;
using test::layer_bytes;
using test::resident_stack;
using test::side;
using test::some_input;
using test::Stack;
using test::StackImpl;
using test::StoredStack;

TEST_CASE("a model with one half on disk computes bitwise the same as when it is resident", "[dispatch]") {
  const StoredStack stored("dispatch_half");
  const at::NoGradGuard no_grad;
  for (const auto* source : {"weights", "weights/model.safetensors", "shards", "pickles", "state"}) {
    INFO(source);
    auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.folder() / source,
                                              {.max_memory = half_in_memory});
    for (int pass = 0; pass < 3; ++pass) CHECK(is_same(model(some_input()), stored.expected));
    const auto counters = model.counters();
    CHECK(counters.on_disk > half_of_stack - layer_bytes);
    CHECK(counters.in_memory > 0);
    CHECK(counters.in_memory + counters.on_disk == static_cast<std::uint64_t>(2 * half_of_stack) + 4 * side * 4 + 8);
    CHECK(counters.in_memory + counters.peak_page_bytes <= half_of_stack);
    CHECK(counters.pages_read > 0);
    CHECK(model.device_map().at("layer0") == DevicePlacement::cpu());
    CHECK(model.device_map().at("layer7") == DevicePlacement::disk());
  }
}

TEST_CASE("a model that fits is in memory, and nothing is paged", "[dispatch]") {
  const StoredStack stored("dispatch_fits");
  const at::NoGradGuard no_grad;
  auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights());
  CHECK(is_same(model(some_input()), stored.expected));
  CHECK(model.counters().on_disk == 0);
  CHECK(model.counters().pages_read == 0);
  CHECK(model.device_map() == DeviceMap{{"", DevicePlacement::cpu()}});
}

TEST_CASE("models with values and deferred models can be dispatched", "[dispatch]") {
  const StoredStack stored("dispatch_models");
  const at::NoGradGuard no_grad;
  const LoadAndDispatchOptions options{.max_memory = half_in_memory};
  at::manual_seed(77);
  for (auto& net : {Stack(), construct_deferred([] { return Stack(); })}) {
    auto model = load_checkpoint_and_dispatch(stored.state(), net, stored.weights(), options);
    model->eval();
    CHECK(is_same(model(some_input()), stored.expected));
    CHECK(model.counters().on_disk > 0);
  }
  auto pointer = std::make_shared<StackImpl>();
  auto model = load_checkpoint_and_dispatch(stored.state(), pointer, stored.weights(), options);
  model->eval();
  CHECK(is_same(model(some_input()), stored.expected));
}

TEST_CASE("the ranks of a node share the host's memory evenly", "[dispatch]") {
  const State state({.cpu = true});
  const auto mine = get_max_memory(state).at(DevicePlacement::cpu()) * state.num_processes();
  const auto whole = static_cast<Bytes>(machine::available_memory().value());
  CHECK(mine < 1.3 * whole);  // other programs start and end meanwhile
  CHECK(mine > 0.7 * whole);
}

TEST_CASE("placements are given by rules and by maps", "[dispatch]") {
  const StoredStack stored("dispatch_maps");
  const at::NoGradGuard no_grad;
  for (const auto* rule : {"auto", "balanced", "balanced_low_0", "sequential"}) {
    auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(),
                                              {.device_map = rule, .max_memory = half_in_memory});
    CHECK(is_same(model(some_input()), stored.expected));
  }
  const DeviceMap all_on_disk = {{"", DevicePlacement::disk()}};
  auto on_disk =
      load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(), {.device_map = all_on_disk});
  CHECK(is_same(on_disk(some_input()), stored.expected));
  CHECK(on_disk.counters().in_memory == 2 * side * 4 + 8);  // the buffers
  const DeviceMap one_on_disk = {{"", DevicePlacement::cpu()}, {"layer3.weight", DevicePlacement::disk()}};
  auto one = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(), {.device_map = one_on_disk});
  CHECK(is_same(one(some_input()), stored.expected));
  CHECK(one.counters().on_disk == side * side * 4);
  CHECK(one.device_map() == one_on_disk);
}

TEST_CASE("buffers are offloaded to disk on request", "[dispatch]") {
  const StoredStack stored("dispatch_buffers");
  const at::NoGradGuard no_grad;
  const DeviceMap map = {{"", DevicePlacement::disk()}};
  auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(),
                                            {.device_map = map, .offload_buffers = true});
  CHECK(is_same(model(some_input()), stored.expected));
  CHECK(model.counters().in_memory == 0);
}

TEST_CASE("weights are converted while they are loaded, in memory and from disk", "[dispatch]") {
  const StoredStack stored("dispatch_types");
  const at::NoGradGuard no_grad;
  for (const auto* source : {"weights", "pickles"}) {
    auto resident = resident_stack();
    load_checkpoint_in_model(resident, stored.folder() / source,
                             {.dtype = at::kBFloat16, .keep_in_fp32_modules = {"norm"}});
    const auto expected = resident->forward(some_input().to(at::kBFloat16));
    auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.folder() / source,
                                              {.max_memory = {{DevicePlacement::cpu(), half_of_stack * 0.8}},
                                               .dtype = at::kBFloat16,
                                               .keep_in_fp32_modules = {"norm"}});
    CHECK(is_same(model(some_input().to(at::kBFloat16)), expected));
    CHECK(model.counters().on_disk > layer_bytes);
    CHECK(model.counters().in_memory > layer_bytes);
    CHECK(model.counters().in_memory + model.counters().on_disk < 1.1 * half_of_stack);
    CHECK(model->norm->weight.scalar_type() == at::kFloat);
    CHECK(model->layers[7]->weight.scalar_type() == at::kBFloat16);
  }
}

TEST_CASE("an empty model is loaded into memory as any other", "[dispatch]") {
  const StoredStack stored("dispatch_filled");
  const at::NoGradGuard no_grad;
  auto net = empty_stack();
  load_checkpoint_in_model(net, stored.weights());
  CHECK(is_same(net->forward(some_input()), stored.expected));
}

}  // namespace hortator
