// Models of which parts lie on disk.
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <fstream>
#include <hortator/hortator.hpp>

#include "base/memory_limit.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

namespace hortator {
namespace {

namespace fs = std::filesystem;
using test::Folder;

constexpr std::int64_t side = 64;
constexpr int stack_height = 8;
constexpr Bytes layer_bytes = (side * side + side) * 4.0;
constexpr Bytes half_of_stack = stack_height * layer_bytes / 2;

struct StackImpl : torch::nn::Module {
  StackImpl() {
    for (int i = 0; i < stack_height; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(side, side)));
    norm = register_module("norm", torch::nn::BatchNorm1d(side));
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers) x = at::tanh(layer(x));
    return norm(x);
  }
  std::vector<torch::nn::Linear> layers;
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Stack);

Stack resident_stack() {
  at::manual_seed(31);
  Stack net;
  const at::NoGradGuard no_grad;
  net->norm->running_mean.normal_();
  net->eval();
  return net;
}

Stack empty_stack() {
  auto net = init_empty_weights([] { return Stack(); });
  net->eval();
  return net;
}

at::Tensor some_input() { return at::linspace(-1, 1, 3 * side).view({3, side}); }

bool is_same(const at::Tensor& a, const at::Tensor& b) { return a.scalar_type() == b.scalar_type() && at::equal(a, b); }

/// A model and what it answers, in files of all kinds.
class Stored {
 public:
  explicit Stored(const std::string& name) : folder_(accelerator_, name) {
    auto net = resident_stack();
    const at::NoGradGuard no_grad;
    expected = net->forward(some_input());
    accelerator_.save_model(net, weights());
    accelerator_.save_model(net, folder_.path() / "shards", {.max_shard_size = "40KB"});
    accelerator_.save_model(net, folder_.path() / "pickles", {.safe_serialization = false});
    auto model = accelerator_.prepare(net);
    accelerator_.save_state(folder_.path() / "state");
  }
  fs::path weights() const { return folder_.path() / "weights"; }
  const fs::path& folder() const { return folder_.path(); }
  const State& state() const { return accelerator_; }

  at::Tensor expected;

 private:
  Accelerator accelerator_{{.cpu = true}};
  Folder folder_;
};

const MaxMemory half_in_memory = {{Place::cpu(), half_of_stack}};

}  // namespace

TEST_CASE("a model of which half is on disk answers bitwise as when it is resident", "[dispatch]") {
  const Stored stored("dispatch_half");
  const at::NoGradGuard no_grad;
  for (const auto* place : {"weights", "weights/model.safetensors", "shards", "pickles", "state"}) {
    INFO(place);
    auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.folder() / place,
                                              {.max_memory = half_in_memory});
    for (int pass = 0; pass < 3; ++pass) CHECK(is_same(model(some_input()), stored.expected));
    const auto counters = model.counters();
    CHECK(counters.on_disk > half_of_stack - layer_bytes);
    CHECK(counters.in_memory > 0);
    CHECK(counters.in_memory + counters.on_disk == static_cast<std::uint64_t>(2 * half_of_stack) + 4 * side * 4 + 8);
    CHECK(counters.in_memory + counters.peak_page_bytes <= half_of_stack);
    CHECK(counters.pages_read > 0);
    CHECK(model.device_map().at("layer0") == Place::cpu());
    CHECK(model.device_map().at("layer7") == Place::disk());
  }
}

TEST_CASE("what fits is in memory, and nothing is paged", "[dispatch]") {
  const Stored stored("dispatch_fits");
  const at::NoGradGuard no_grad;
  auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights());
  CHECK(is_same(model(some_input()), stored.expected));
  CHECK(model.counters().on_disk == 0);
  CHECK(model.counters().pages_read == 0);
  CHECK(model.device_map() == DeviceMap{{"", Place::cpu()}});
}

TEST_CASE("any model is taken: with values, or with values that were put off", "[dispatch]") {
  const Stored stored("dispatch_models");
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

TEST_CASE("each rank of a node has its part of the host's memory", "[dispatch]") {
  const State state({.cpu = true});
  const auto mine = get_max_memory(state).at(Place::cpu()) * state.num_processes();
  const auto whole = static_cast<Bytes>(base::available_memory().value());
  CHECK(mine < 1.3 * whole);  // others come and go meanwhile
  CHECK(mine > 0.7 * whole);
}

TEST_CASE("places are given by rules and by maps", "[dispatch]") {
  const Stored stored("dispatch_maps");
  const at::NoGradGuard no_grad;
  for (const auto* rule : {"auto", "balanced", "balanced_low_0", "sequential"}) {
    auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(),
                                              {.device_map = rule, .max_memory = half_in_memory});
    CHECK(is_same(model(some_input()), stored.expected));
  }
  const DeviceMap all_on_disk = {{"", Place::disk()}};
  auto on_disk =
      load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(), {.device_map = all_on_disk});
  CHECK(is_same(on_disk(some_input()), stored.expected));
  CHECK(on_disk.counters().in_memory == 2 * side * 4 + 8);  // the buffers
  const DeviceMap one_on_disk = {{"", Place::cpu()}, {"layer3.weight", Place::disk()}};
  auto one = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(), {.device_map = one_on_disk});
  CHECK(is_same(one(some_input()), stored.expected));
  CHECK(one.counters().on_disk == side * side * 4);
  CHECK(one.device_map() == one_on_disk);
}

TEST_CASE("buffers go to disk when they are asked to", "[dispatch]") {
  const Stored stored("dispatch_buffers");
  const at::NoGradGuard no_grad;
  const DeviceMap map = {{"", Place::disk()}};
  auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(),
                                            {.device_map = map, .offload_buffers = true});
  CHECK(is_same(model(some_input()), stored.expected));
  CHECK(model.counters().in_memory == 0);
}

TEST_CASE("weights become another type on their way, in memory and from disk", "[dispatch]") {
  const Stored stored("dispatch_types");
  const at::NoGradGuard no_grad;
  for (const auto* place : {"weights", "pickles"}) {
    auto resident = resident_stack();
    load_checkpoint_in_model(resident, stored.folder() / place,
                             {.dtype = at::kBFloat16, .keep_in_fp32_modules = {"norm"}});
    const auto expected = resident->forward(some_input().to(at::kBFloat16));
    auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.folder() / place,
                                              {.max_memory = {{Place::cpu(), half_of_stack * 0.8}},
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

TEST_CASE("an empty model is filled in memory as any other", "[dispatch]") {
  const Stored stored("dispatch_filled");
  const at::NoGradGuard no_grad;
  auto net = empty_stack();
  load_checkpoint_in_model(net, stored.weights());
  CHECK(is_same(net->forward(some_input()), stored.expected));
}

TEST_CASE("parts on disk are changed where there is a folder for that, and nowhere else", "[dispatch]") {
  const Stored stored("dispatch_changed");
  const auto train = [&](const fs::path& folder) {
    auto model = load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(),
                                              {.max_memory = half_in_memory, .offload_folder = folder});
    torch::optim::SGD sgd(model->parameters(), 0.1);
    model(some_input()).square().sum().backward();
    sgd.step();
    const at::NoGradGuard no_grad;
    return model(some_input()).clone();
  };
  CHECK_THROWS_WITH(train({}), ContainsSubstring("give a folder"));
  auto resident = resident_stack();
  torch::optim::SGD sgd(resident->parameters(), 0.1);
  resident->forward(some_input()).square().sum().backward();
  sgd.step();
  const auto folder = stored.folder() / ("scratch" + std::to_string(stored.state().process_index()));
  CHECK(is_same(train(folder), resident->forward(some_input()).detach()));
  CHECK(fs::is_empty(folder));
}

TEST_CASE("at its end parts on disk have no values, unless they were brought into memory", "[dispatch]") {
  const Stored stored("dispatch_end");
  const at::NoGradGuard no_grad;
  auto lost = empty_stack();
  { auto model = load_checkpoint_and_dispatch(stored.state(), lost, stored.weights(), {.max_memory = half_in_memory}); }
  CHECK_THROWS_WITH(lost->forward(some_input()),
                    ContainsSubstring("has no values any more") || ContainsSubstring("values are gone"));
  auto kept = empty_stack();
  {
    auto model = load_checkpoint_and_dispatch(stored.state(), kept, stored.weights(), {.max_memory = half_in_memory});
    model.remove();
    CHECK(model.counters().on_disk == 0);
    CHECK(is_same(model(some_input()), stored.expected));
  }
  CHECK(is_same(kept->forward(some_input()), stored.expected));
}

TEST_CASE("a checkpoint that is changed meanwhile is an error that names it", "[dispatch]") {
  const Stored stored("dispatch_file");
  const auto copy = stored.folder() / ("copy" + std::to_string(stored.state().process_index()) + ".safetensors");
  fs::copy_file(stored.weights() / "model.safetensors", copy);
  const at::NoGradGuard no_grad;
  auto model =
      load_checkpoint_and_dispatch(stored.state(), empty_stack(), copy, {.device_map = DeviceMap{{"", Place::disk()}}});
  CHECK(is_same(model(some_input()), stored.expected));
  fs::resize_file(copy, fs::file_size(copy) / 2);
  CHECK_THROWS_WITH(model(some_input()), ContainsSubstring(copy.string()) && ContainsSubstring("was changed"));
}

TEST_CASE("tied tensors are one, wherever they lie, and their values in the file must agree", "[dispatch]") {
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
  for (const auto& map : {DeviceMap{{"", Place::disk()}}, DeviceMap{{"in", Place::disk()}, {"out", Place::cpu()}}}) {
    auto empty = init_empty_weights([] { return std::make_shared<Tied>(); });
    auto model = load_checkpoint_and_dispatch(state, empty, folder.path() / "tied", {.device_map = map});
    CHECK(is_same(model(some_input()), expected));
    CHECK(model.counters().on_disk == (map.size() == 1 ? side * side * 4 : 0));  // the faster place for both
    auto other = init_empty_weights([] { return std::make_shared<Tied>(); });
    CHECK_THROWS_WITH(
        load_checkpoint_and_dispatch(state, other, folder.path() / "apart", {.device_map = map, .strict = false}),
        ContainsSubstring("other values in 'out.weight'"));
  }
}

TEST_CASE("what the checkpoint does not have keeps its values, and must have some", "[dispatch]") {
  const Stored stored("dispatch_missing");
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

TEST_CASE("what cannot be dispatched is refused by name", "[dispatch]") {
  const Stored stored("dispatch_refused");
  const auto load = [&](const LoadAndDispatchOptions& options) {
    return load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.weights(), options);
  };
  CHECK_THROWS_WITH(load({.device_map = "atuo"}), ContainsSubstring("did you mean 'auto'?"));
  CHECK_THROWS_WITH(load({.device_map = DeviceMap{{"layer0", Place::cpu()}}}),
                    ContainsSubstring("no place for layer1.weight"));
  CHECK_THROWS_WITH(load({.device_map = DeviceMap{{"", Place::cpu()}, {"layer9", Place::cpu()}}}),
                    ContainsSubstring("does not have: layer9"));
  CHECK_THROWS_WITH(load({.device_map = DeviceMap{{"", Place::cpu()}, {"layer1", Place::cuda(63)}}}),
                    ContainsSubstring("'layer1' is to lie on cuda:63"));
  CHECK_THROWS_WITH(load_checkpoint_and_dispatch(stored.state(), empty_stack(), stored.folder() / "nowhere"),
                    ContainsSubstring("nowhere"));
  CHECK_THROWS_WITH(load({.dtype = at::kInt}), ContainsSubstring("weights were to become int32"));
  auto dispatched = load({.max_memory = half_in_memory});
  CHECK_THROWS_WITH(load_checkpoint_and_dispatch(stored.state(), dispatched.unwrap(), stored.weights()),
                    ContainsSubstring("is already"));
}

TEST_CASE("a model in memory is dispatched, and comes back", "[dispatch]") {
  const State state({.cpu = true});
  const Folder folder(state, "dispatch_model");
  const auto scratch = folder.path() / std::to_string(state.process_index());
  const DeviceMap map = {{"", Place::cpu()}, {"layer2", Place::disk()}, {"norm", Place::disk()}};
  auto net = resident_stack();
  const at::NoGradGuard no_grad;
  const auto expected = net->forward(some_input());
  CHECK_THROWS_WITH(dispatch_model(net, map),
                    ContainsSubstring("'layer2.weight' is to lie on disk") && ContainsSubstring("offload_folder"));
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
  CHECK(is_same(dispatch_model(net, DeviceMap{{"", Place::cpu()}})(some_input()), expected));
  CHECK_THROWS_WITH(dispatch_model(empty_stack(), map, {.offload_folder = scratch}),
                    ContainsSubstring("has no values") && ContainsSubstring("load_checkpoint_and_dispatch"));
}

}  // namespace hortator
