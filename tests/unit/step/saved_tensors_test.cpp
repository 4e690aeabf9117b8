#include <malloc.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <ATen/ATen.h>

#include <filesystem>
#include <hortator/error.hpp>
#include <hortator/training/recompute.hpp>
#include <hortator/training/recompute_layers.hpp>
#include <hortator/training/saved_tensors.hpp>

#include "step/recompute/spill_file.hpp"
#include "support/catch.hpp"

using namespace hortator;
using Gradients = std::vector<at::Tensor>;

namespace {

// Strided chunks, a transposed input, a convolution, dropout, views and an output that two operators save.
struct MixedImpl : torch::nn::Module {
  MixedImpl() {
    register_module("project", project);
    register_module("convolve", convolve);
    register_module("drop", drop);
    register_module("out", out);
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto parts = project(x).chunk(3, -1);
    const auto scores = at::softmax(at::matmul(parts[0], parts[1].transpose(-1, -2)), -1);
    auto h = at::relu(at::matmul(drop(scores), parts[2])).exp().tanh();
    h = convolve(h.unsqueeze(1)).squeeze(1) + h;
    return out(h).square().mean();
  }
  torch::nn::Linear project{16, 48};
  torch::nn::Conv2d convolve{torch::nn::Conv2dOptions(1, 1, 3).padding(1)};
  torch::nn::Dropout drop{0.3};
  torch::nn::Linear out{16, 4};
};
TORCH_MODULE(Mixed);

Gradients gradients_of(Mixed& net, const std::optional<SavedTensorOptions>& options) {
  at::manual_seed(5);
  net->zero_grad();
  auto x = at::randn({3, 8, 16}, at::kFloat).requires_grad_();
  std::optional<SavedTensors> saved;
  if (options) saved.emplace(*options);
  const auto loss = net(x);
  if (options) CHECK(saved->kept_bytes() > 0);
  saved.reset();
  loss.backward();
  Gradients gradients = {x.grad()};
  for (const auto& parameter : net->parameters()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

bool same_bits(const Gradients& a, const Gradients& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return at::equal(x, y); });
}

// Bytes that malloc has given out: what is freed counts no more, whatever stays with the process.
std::int64_t allocated_bytes() {
  const auto info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

// 30 operators; each saves a tensor of 4 MiB.
at::Tensor deep(at::Tensor x) {
  for (int i = 0; i < 30; ++i) x = x.sin();
  return x.sum();
}

}  // namespace

TEST_CASE("gradients of tensors that are kept in a file have the same bits") {
  Mixed net;
  const auto plain = gradients_of(net, {});
  CHECK(same_bits(plain, gradients_of(net, SavedTensorOptions{.folder = "spill", .min_bytes = 0})));
  CHECK(std::filesystem::is_empty("spill"));
  std::filesystem::remove("spill");
}

TEST_CASE("frozen weights stay in memory as they are") {
  torch::nn::Linear frozen(64, 64);
  frozen->weight.requires_grad_(false);
  frozen->bias.requires_grad_(false);
  const auto x = at::ones({2, 64}).requires_grad_();
  const auto kept = [&](std::vector<at::Tensor> weights) {
    const SavedTensors saved({.dtype = at::kBFloat16, .min_bytes = 4096, .weights = std::move(weights)});
    const auto y = at::matmul(x, frozen->weight.t());
    return saved.kept_bytes();
  };
  CHECK(kept({}) == 64 * 64 * 4);
  CHECK(kept(frozen->parameters()) == 0);
  CHECK(kept({}) == 0);  // remembered
}

TEST_CASE("gradients of tensors that are kept in 16 bits are those of rounded values") {
  Mixed net;
  const auto plain = gradients_of(net, {});
  const auto narrow = gradients_of(net, SavedTensorOptions{.dtype = at::kBFloat16, .min_bytes = 0});
  CHECK_FALSE(same_bits(plain, narrow));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CHECK((plain[i] - narrow[i]).norm().item<double>() < 0.02 * plain[i].norm().item<double>());
  }
  // In the file as well: half the bytes, the same rounding.
  CHECK(same_bits(narrow,
                  gradients_of(net, SavedTensorOptions{.folder = "spill", .dtype = at::kBFloat16, .min_bytes = 0})));
  std::filesystem::remove("spill");
}

TEST_CASE("tensors in a file take no memory until backward") {
  const auto x = at::rand({1024, 1024}, at::kFloat).requires_grad_();
  const auto growth = [&](const std::optional<SavedTensorOptions>& options) {
    const auto before = allocated_bytes();
    std::optional<SavedTensors> saved;
    if (options) saved.emplace(*options);
    const auto loss = deep(x);
    const auto grown = allocated_bytes() - before;
    if (options) CHECK(saved->kept_bytes() >= 29 * (std::int64_t{4} << 20));
    saved.reset();
    loss.backward();
    return grown >> 20;
  };
  growth({});  // starts threads
  CHECK(growth({}) >= 110);
  CHECK(growth(SavedTensorOptions{.folder = "spill"}) <= 24);
  const auto narrow = growth(SavedTensorOptions{.dtype = at::kBFloat16});
  CHECK(narrow >= 55);
  CHECK(narrow <= 80);
  std::filesystem::remove("spill");
}

TEST_CASE("a tensor that several operators save is kept once, and released after backward") {
  const auto x = at::rand({64, 64}, at::kFloat).requires_grad_();
  SavedTensors saved({.dtype = at::kBFloat16, .min_bytes = 0});
  const auto y = x.exp();  // saves its result
  const auto loss = (y.sin() + y.cos()).sum();
  CHECK(saved.kept_bytes() == 64 * 64 * 4);
  loss.backward();
  CHECK(saved.kept_bytes() == 0);
}

TEST_CASE("small tensors, parameters and overlapping tensors stay as they are") {
  const auto x = at::rand({8, 8}, at::kFloat).requires_grad_();
  SavedTensors saved({.dtype = at::kBFloat16, .min_bytes = 1024});
  (x.sin() + x.t().cos()).sum().backward();  // the leaf and a view of it
  (x.exp().sin()).sum().backward();          // 256 bytes
  const auto wide = x.sum(1, true).expand({8, 2000}).sin().sum();
  CHECK(saved.kept_bytes() == 0);
  wide.backward();
  CHECK(x.grad().defined());
}

TEST_CASE("a tensor that stays and is changed in place before backward is an error") {
  auto x = at::rand({4, 4}, at::kFloat).requires_grad_();
  const auto y = x * 2;
  SavedTensors saved({.dtype = at::kBFloat16});
  const auto loss = y.sin().sum();
  y.detach().add_(1);
  CHECK_THROWS_WITH(loss.backward(), ContainsSubstring("changed in place after autograd had saved it"));
}

TEST_CASE("a graph that is kept is read twice, and double backward works") {
  const auto x = at::rand({64, 64}, at::kFloat).requires_grad_();
  std::filesystem::create_directory("spill");
  SavedTensors saved({.folder = "spill", .min_bytes = 0});
  const auto loss = x.exp().sin().sum();
  const auto first = torch::autograd::grad({loss}, {x}, {}, true, true)[0];
  const auto second = torch::autograd::grad({loss}, {x}, {}, true)[0];
  CHECK(at::equal(first, second));
  const auto y = x.detach().exp();
  const auto expected = y * y.cos() - y * y * y.sin();
  CHECK(at::allclose(torch::autograd::grad({first.sum()}, {x})[0], expected));
  std::filesystem::remove("spill");
}

TEST_CASE("recomputed calls keep their arguments as an enclosing scope says") {
  const auto x = at::rand({64, 64}, at::kFloat).requires_grad_();
  const auto run = [&](bool keeps) {
    x.mutable_grad().reset();
    std::optional<SavedTensors> saved;
    if (keeps) saved.emplace(SavedTensorOptions{.folder = "spill", .min_bytes = 0});
    auto h = x * 2;
    for (int i = 0; i < 3; ++i) h = recompute([](const at::Tensor& t) { return t.sin().exp(); }, h);
    if (keeps) CHECK(saved->kept_bytes() == 3 * 64 * 64 * 4);
    h.sum().backward();
    return x.grad().clone();
  };
  CHECK(at::equal(run(false), run(true)));
  std::filesystem::remove("spill");
}

TEST_CASE("options that ask for nothing or for a wide type are refused") {
  CHECK_THROWS_WITH(SavedTensors(SavedTensorOptions{}), ContainsSubstring("ask for nothing"));
  CHECK_THROWS_WITH(SavedTensors({.dtype = at::kFloat}), ContainsSubstring("dtype is Float"));
  CHECK_THROWS_AS(SavedTensors({.folder = "/proc/none"}), Error);
}

TEST_CASE("space of a spill file is used again by blocks of the same size") {
  step::SpillFile file(".");
  const std::vector<char> data(1000, 'a'), other(1000, 'b');
  const auto first = file.write(data.data(), 1000);
  const auto second = file.write(other.data(), 500);
  file.release(first, 1000);
  CHECK(file.write(other.data(), 500) == 1500);
  CHECK(file.write(other.data(), 1000) == first);
  CHECK(file.bytes() == 2000);
  std::vector<char> back(500);
  file.read(second, back.data(), 500);
  CHECK(back == std::vector<char>(500, 'b'));
}

namespace {

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    register_module("linear", linear);
    register_module("norm", norm);
    register_module("drop", drop);
  }
  at::Tensor forward(const at::Tensor& x) {
    runs += 1;
    return x + drop(at::gelu(norm(linear(x)))).exp().tanh();
  }
  torch::nn::Linear linear{8, 8};
  torch::nn::BatchNorm1d norm{8};
  torch::nn::Dropout drop{0.2};
  int runs = 0;
};
TORCH_MODULE(Block);

struct StackImpl : torch::nn::Module {
  StackImpl() : layers(Block(), Block(), torch::nn::Linear(8, 8), Block()) { register_module("layers", layers); }
  at::Tensor forward(const at::Tensor& x) { return layers->forward(x).square().sum(); }
  torch::nn::Sequential layers;
};
TORCH_MODULE(Stack);

struct Trained {
  std::vector<std::string> names;
  Gradients values;
  std::vector<int> runs;
};

Trained trained(const std::optional<RecomputeLayersOptions>& options, std::int64_t expected = 0) {
  at::manual_seed(9);
  Stack stack;
  std::vector<std::shared_ptr<BlockImpl>> blocks;
  for (const auto& part : stack->modules()) {
    if (auto block = std::dynamic_pointer_cast<BlockImpl>(part)) blocks.push_back(block);
  }
  if (options) CHECK(recompute_layers(stack, *options) == expected);
  const auto x = at::randn({4, 8});
  for (int step = 0; step < 2; ++step) stack(x).backward();
  Trained result;
  for (const auto& parameter : stack->named_parameters()) {
    result.names.push_back(parameter.key());
    result.values.push_back(parameter.value().grad().clone());
  }
  for (const auto& buffer : stack->named_buffers()) {
    result.names.push_back(buffer.key());
    result.values.push_back(buffer.value().clone());
  }
  for (const auto& block : blocks) result.runs.push_back(block->runs);
  return result;
}

}  // namespace

TEST_CASE("layers of a Sequential are recomputed by class or name, to the same bits") {
  const auto plain = trained({});
  CHECK(plain.runs == std::vector{2, 2, 2});
  const auto by_class = trained(RecomputeLayersOptions{.classes = {"Block"}}, 3);
  CHECK(by_class.runs == std::vector{4, 4, 4});
  const auto by_name = trained(RecomputeLayersOptions{.names = {"layers.1", "*.2"}}, 2);
  CHECK(by_name.runs == std::vector{2, 4, 2});
  for (const auto& other : {by_class, by_name}) {
    CHECK(other.names == plain.names);
    CHECK(same_bits(plain.values, other.values));
  }
}

TEST_CASE("recompute_layers changes a layer once, and refuses what it cannot reach") {
  Stack stack;
  CHECK(recompute_layers(stack, {.names = {"layers.*"}}) == 4);
  CHECK_THROWS_WITH(recompute_layers(stack, {.classes = {"Block"}}), ContainsSubstring("no layer of a Sequential"));
  CHECK_THROWS_WITH(stack->layers->clone(), ContainsSubstring("cannot be cloned"));
  Block alone;
  CHECK_THROWS_WITH(recompute_layers(alone, {.names = {"*"}}), ContainsSubstring("recompute() in forward"));
}
