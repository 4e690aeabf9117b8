// Parts of models on disk: training, tied and missing tensors, refused models, and the end of a dispatch.
#include <torch/optim/sgd.h>

#include "support/catch.hpp"
#include "unit/accelerator/dispatch/dispatch_fixture.hpp"

namespace hortator {

namespace fs = std::filesystem;
using test::empty_stack;
using test::Folder;
using test::half_in_memory;
using test::is_same;
using test::layer_bytes;
using test::resident_stack;
using test::side;
using test::some_input;
using test::StackImpl;
using test::StoredStack;

TEST_CASE("parts on disk can be trained only with an offload folder, which holds the changes", "[dispatch]") {
  const StoredStack stored("dispatch_changed");
  const auto train = [&](const fs::path& folder) {
    auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(),
                                              {.max_memory = half_in_memory, .offload_folder = folder});
    torch::optim::SGD sgd(model->parameters(), 0.1);
    model(some_input()).square().sum().backward();
    sgd.step();
    const at::NoGradGuard no_grad;
    return model(some_input()).clone();
  };
  CHECK_THROWS_WITH(train({}), ContainsSubstring("set a folder"));
  auto resident = resident_stack();
  torch::optim::SGD sgd(resident->parameters(), 0.1);
  resident->forward(some_input()).square().sum().backward();
  sgd.step();
  const auto folder = stored.folder() / ("scratch" + std::to_string(stored.state().process_index()));
  CHECK(is_same(train(folder), resident->forward(some_input()).detach()));
  CHECK(fs::is_empty(folder));
}

TEST_CASE("after a dispatch, parts on disk have no values unless they were moved into memory", "[dispatch]") {
  const StoredStack stored("dispatch_end");
  const at::NoGradGuard no_grad;
  auto lost = empty_stack();
  { auto model = load_checkpoint_and_dispatch(stored.state(), lost, stored.weights(), {.max_memory = half_in_memory}); }
  CHECK_THROWS_WITH(lost->forward(some_input()), ContainsSubstring("has no values"));
  auto kept = empty_stack();
  {
    auto model = load_checkpoint_and_dispatch(stored.state(), kept, stored.weights(), {.max_memory = half_in_memory});
    model.remove();
    CHECK(model.counters().on_disk == 0);
    CHECK(is_same(model(some_input()), stored.expected));
  }
  CHECK(is_same(kept->forward(some_input()), stored.expected));
}

TEST_CASE("a checkpoint that changes during a dispatch is an error that names it", "[dispatch]") {
  const StoredStack stored("dispatch_file");
  const auto copy = stored.folder() / ("copy" + std::to_string(stored.state().process_index()) + ".safetensors");
  fs::copy_file(stored.weights() / "model.safetensors", copy);
  const at::NoGradGuard no_grad;
  auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), copy,
                                            {.device_map = DeviceMap{{"", DevicePlacement::disk()}}});
  CHECK(is_same(model(some_input()), stored.expected));
  fs::resize_file(copy, fs::file_size(copy) / 2);
  CHECK_THROWS_WITH(model(some_input()), ContainsSubstring(copy.string()) && ContainsSubstring("was changed"));
}

TEST_CASE("tied tensors have one placement, and their values in the file must agree", "[dispatch]") {
  struct Holder : torch::nn::Module {
    explicit Holder(const at::Tensor& weight) { register_parameter("weight", weight); }
  };
  struct Tied : torch::nn::Module {
    explicit Tied(bool is_tied = true) {
      in = register_module("in", torch::nn::Linear(torch::nn::LinearOptions(side, side).bias(false)));
      register_module("out", std::make_shared<Holder>(is_tied ? in->weight : at::randn({side, side})));
    }
    at::Tensor forward(const at::Tensor& x) { return at::linear(in(x), in->weight); }
    torch::nn::Linear in{nullptr};
  };
  Accelerator accelerator({.cpu = true});
  const State& state = accelerator;
  const Folder folder(state, "dispatch_tied");
  at::manual_seed(8);
  auto apart = std::make_shared<Tied>(false);
  accelerator.save_model(apart, folder.path() / "apart");
  auto tied = std::make_shared<Tied>();
  const at::NoGradGuard no_grad;
  const auto expected = tied->forward(some_input());
  accelerator.save_model(tied, folder.path() / "tied");
  for (const auto& map : {DeviceMap{{"", DevicePlacement::disk()}},
                          DeviceMap{{"in", DevicePlacement::disk()}, {"out", DevicePlacement::cpu()}}}) {
    auto empty = init_empty_weights([] { return std::make_shared<Tied>(); });
    auto model = load_checkpoint_and_dispatch(state, empty, folder.path() / "tied", {.device_map = map});
    CHECK(is_same(model(some_input()), expected));
    CHECK(model.counters().on_disk == (map.size() == 1 ? side * side * 4 : 0));  // both have the faster placement
    auto other = init_empty_weights([] { return std::make_shared<Tied>(); });
    CHECK_THROWS_WITH(
        load_checkpoint_and_dispatch(state, other, folder.path() / "apart", {.device_map = map, .strict = false}),
        ContainsSubstring("other values in 'out.weight'"));
  }
}

TEST_CASE("tensors missing in the checkpoint keep their values, and are an error if they have none", "[dispatch]") {
  const StoredStack stored("dispatch_missing");
  struct MoreImpl : StackImpl {
    MoreImpl() { more = register_module("more", torch::nn::Linear(side, side)); }
    at::Tensor forward(const at::Tensor& x) { return more(StackImpl::forward(x)); }
    torch::nn::Linear more{nullptr};
  };
  const at::NoGradGuard no_grad;
  const LoadAndDispatchOptions options{.max_memory = half_in_memory, .strict = false};
  auto net = std::make_shared<MoreImpl>();
  net->eval();
  const auto expected = net->more(stored.expected);
  CHECK_THROWS_WITH(load_checkpoint_and_dispatch(stored.state(), net, stored.weights(), {.max_memory = half_in_memory}),
                    ContainsSubstring("missing 'more.weight'"));
  auto model = load_checkpoint_and_dispatch(stored.state(), net, stored.weights(), options);
  CHECK(is_same(model(some_input()), expected));
  auto empty = init_empty_weights([] { return std::make_shared<MoreImpl>(); });
  CHECK_THROWS_WITH(load_checkpoint_and_dispatch(stored.state(), empty, stored.weights(), options),
                    ContainsSubstring("'more.weight' has no values"));
}

TEST_CASE("models and device maps that cannot be dispatched are refused by name", "[dispatch]") {
  const StoredStack stored("dispatch_refused");
  const auto load = [&](const LoadAndDispatchOptions& options) {
    return load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(), options);
  };
  CHECK_THROWS_WITH(load({.device_map = "atuo"}), ContainsSubstring("did you mean 'auto'?"));
  CHECK_THROWS_WITH(load({.device_map = DeviceMap{{"layer0", DevicePlacement::cpu()}}}),
                    ContainsSubstring("no entry for layer1.weight"));
  CHECK_THROWS_WITH(load({.device_map = DeviceMap{{"", DevicePlacement::cpu()}, {"layer9", DevicePlacement::cpu()}}}),
                    ContainsSubstring("does not have: layer9"));
  CHECK_THROWS_WITH(
      load({.device_map = DeviceMap{{"", DevicePlacement::cpu()}, {"layer1", DevicePlacement::cuda(63)}}}),
      ContainsSubstring("'layer1' is mapped to cuda:63"));
  CHECK_THROWS_WITH(load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.folder() / "nowhere"),
                    ContainsSubstring("nowhere"));
  CHECK_THROWS_WITH(load({.dtype = at::kInt}), ContainsSubstring("Weights were to become int32"));
  auto dispatched = load({.max_memory = half_in_memory});
  CHECK_THROWS_WITH(load_checkpoint_and_dispatch(stored.state(), dispatched.unwrap(), stored.weights()),
                    ContainsSubstring("is already"));
}

TEST_CASE("a model in memory is dispatched, and is in memory again afterwards", "[dispatch]") {
  const State state({.cpu = true});
  const Folder folder(state, "dispatch_model");
  const auto scratch = folder.path() / std::to_string(state.process_index());
  const DeviceMap map = {
      {"", DevicePlacement::cpu()}, {"layer2", DevicePlacement::disk()}, {"norm", DevicePlacement::disk()}};
  auto net = resident_stack();
  const at::NoGradGuard no_grad;
  const auto expected = net->forward(some_input());
  CHECK_THROWS_WITH(dispatch_model(net, map),
                    ContainsSubstring("'layer2.weight' is mapped to disk") && ContainsSubstring("offload_folder"));
  {
    auto model = dispatch_model(net, map, {.offload_folder = scratch});
    CHECK(model.counters().on_disk == static_cast<std::uint64_t>(layer_bytes) + 2 * side * 4);
    CHECK(is_empty_weight(net->layers[2]->weight));
    CHECK_FALSE(is_empty_weight(net->norm->running_mean));
    CHECK_FALSE(is_empty_weight(net->layers[3]->weight));
    CHECK(is_same(model(some_input()), expected));
  }
  CHECK(is_same(net->forward(some_input()), expected));
  {
    auto model = dispatch_model(net, map, {.offload_folder = scratch, .offload_buffers = true});
    CHECK(is_empty_weight(net->norm->running_mean));
    CHECK(is_same(model(some_input()), expected));
  }
  CHECK(is_same(dispatch_model(net, DeviceMap{{"", DevicePlacement::cpu()}})(some_input()), expected));
  CHECK_THROWS_WITH(dispatch_model(empty_stack(), map, {.offload_folder = scratch}),
                    ContainsSubstring("has no values") && ContainsSubstring("load_checkpoint_and_dispatch"));
}

}  // namespace hortator
