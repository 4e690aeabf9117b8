#include "simulation/networks/networks.hpp"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/models/from_settings.hpp>
#include <hortator/models/registered.hpp>

#include "simulation/networks/standardized.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::simulation;

namespace {

std::shared_ptr<Network> network_of(const std::string& yaml) {
  const Section section(parse_settings(yaml, "sim.yaml"), "sim.yaml", "models.m");
  auto network = make_network(section);
  section.finish();
  return network;
}

at::Tensor output_of(const std::string& yaml, const at::Tensor& input) {
  return network_of(yaml)->forward({input}).front();
}

/// Whether every parameter gets a gradient that is not zero.
bool learns_everywhere(const std::string& yaml, const at::Tensor& input) {
  const auto network = network_of(yaml);
  network->forward({input}).front().square().sum().backward();
  for (const auto& parameter : network->parameters()) {
    if (!parameter.grad().defined() || parameter.grad().abs().sum().item<double>() == 0) return false;
  }
  return true;
}

std::string saved_script() {
  torch::jit::Module module("scripted");
  module.register_parameter("weight", at::full({2, 3}, 0.5).requires_grad_(), false);
  module.register_buffer("shift", at::ones({2}));
  module.define("def forward(self, x):\n  return torch.matmul(x, self.weight.t()) + self.shift\n");
  const auto file = std::filesystem::absolute("scripted_" + std::to_string(getpid()) + ".pt").string();
  module.save(file);
  return file;
}

}  // namespace

TEST_CASE("each built-in network maps its features, and learns with all parameters", "[simulation]") {
  const auto [yaml, input, output] = GENERATE(table<std::string, std::vector<std::int64_t>, std::vector<std::int64_t>>(
      {{"type: mlp\nlayers: [3, 8, 2]\nactivation: tanh", {5, 3}, {5, 2}},
       {"type: mlp\nlayers: [12, 8, 2]\nflatten: true\nactivation: gelu", {5, 3, 4}, {5, 2}},
       {"type: unet\ndims: 1\nin_channels: 2\nout_channels: 1\nwidth: 4\nlevels: 2", {3, 2, 16}, {3, 1, 16}},
       {"type: unet\nin_channels: 1\nout_channels: 2\nwidth: 4\nlevels: 1\nboundary: periodic",
        {2, 1, 8, 6},
        {2, 2, 8, 6}},
       {"type: unet\ndims: 3\nin_channels: 1\nout_channels: 1\nwidth: 2\nlevels: 1", {1, 1, 4, 4, 4}, {1, 1, 4, 4, 4}},
       {"type: fno\nin_channels: 1\nout_channels: 2\nwidth: 4\ndepth: 2\nmodes: [3]", {2, 1, 16}, {2, 2, 16}},
       {"type: fno\nin_channels: 2\nout_channels: 1\nwidth: 4\ndepth: 2\nmodes: [3, 2]", {2, 2, 8, 9}, {2, 1, 8, 9}},
       {"type: transformer\nin_features: 3\nout_features: 2\nwidth: 8\nheads: 2", {2, 7, 3}, {2, 7, 2}}}));
  CAPTURE(yaml);
  const auto x = at::randn(input);
  CHECK(output_of(yaml, x).sizes() == at::IntArrayRef(output));
  CHECK(learns_everywhere(yaml, x));
  auto wrong = input;
  wrong[1] += 1;
  wrong.back() += 1;
  CHECK_THROWS_AS(output_of(yaml, at::randn(wrong)), UsageError);
}

TEST_CASE("a periodic U-Net and a Fourier operator commute with shifts", "[simulation]") {
  const auto x = at::randn({1, 1, 16}, at::kDouble);
  for (const auto* yaml :
       {"type: unet\ndims: 1\nin_channels: 1\nout_channels: 1\nwidth: 4\nlevels: 1\nboundary: periodic\n"
        "dtype: float64",
        "type: fno\nin_channels: 1\nout_channels: 1\nwidth: 4\nmodes: [8]\ncoordinates: false\n"
        "dtype: float64"}) {
    const auto network = network_of(yaml);
    const auto direct = network->forward({x.roll(4, 2)}).front();
    CHECK(at::allclose(direct, network->forward({x}).front().roll(4, 2)));
  }
}

TEST_CASE("a Fourier operator gives the same function on a finer grid", "[simulation]") {
  const auto network = network_of(
      "type: fno\nin_channels: 1\nout_channels: 1\nwidth: 4\ndepth: 1\nmodes: [3]\n"
      "coordinates: false\ndtype: float64");
  const auto field = [](std::int64_t points) {
    const auto x = at::arange(points, at::kDouble) * (2 * M_PI / static_cast<double>(points));
    return (at::sin(x) + at::cos(2 * x)).view({1, 1, points});
  };
  const auto coarse = network->forward({field(16)}).front();
  const auto fine = network->forward({field(64)}).front();
  CHECK(at::allclose(coarse, fine.slice(2, 0, 64, 4)));
}

TEST_CASE("a TorchScript file keeps its names and can be trained", "[simulation]") {
  const auto file = saved_script();
  const auto network = network_of("type: torchscript\nfile: " + file);
  std::filesystem::remove(file);
  CHECK(network->named_parameters().contains("weight"));
  CHECK(network->named_buffers().contains("shift"));
  const auto x = at::ones({4, 3});
  const auto y = network->forward({x}).front();
  CHECK(at::allclose(y, at::full({4, 2}, 2.5)));
  y.sum().backward();
  auto weight = network->named_parameters()["weight"];
  CHECK(at::allclose(weight.grad(), at::full({2, 3}, 4.0)));
  {
    const at::NoGradGuard no_grad;
    weight.sub_(weight.grad());
  }
  CHECK(at::allclose(network->forward({x}).front(), at::full({4, 2}, 1 - 3 * 3.5)));
  CHECK_THROWS_WITH(network_of("type: torchscript\nfile: nowhere.pt"), ContainsSubstring("does not exist"));
}

TEST_CASE("a file of torch.export keeps Python's names and can be trained", "[simulation]") {
  const auto network = network_of("type: exported\nfile: " EXPORTED_MODELS "/mlp.pt2");
  CHECK(network->named_parameters().keys() ==
        std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias"});
  const auto x = at::rand({5, 6});
  network->forward({x}).front().sum().backward();
  const auto bias = network->named_parameters()["layers.2.bias"];
  CHECK(at::allclose(bias.grad(), at::full({3}, 5.0)));
  {
    const at::NoGradGuard no_grad;
    const auto before = network->forward({x}).front();
    bias.add_(1);
    CHECK(at::allclose(network->forward({x}).front(), before + 1));
  }
  const auto modes = network_of("type: exported\nfile: " EXPORTED_MODELS "/modes.pt2");
  CHECK_FALSE(modes->forward({at::rand({8, 4})}).front().equal(modes->forward({at::rand({8, 4})}).front()));
  modes->eval();
  const auto rows = at::rand({8, 4});
  CHECK(modes->forward({rows}).front().equal(modes->forward({rows}).front()));
  CHECK_THROWS_WITH(network_of("type: exported\nfile: nowhere.pt2"), ContainsSubstring("does not exist"));
}

TEST_CASE("a graph model does not depend on the order of nodes and edges, and takes samples with graphs of their own",
          "[simulation]") {
  const auto* const more = GENERATE("", "\naggregation: sum");
  const auto network = network_of(std::string("type: graph\nin_features: 3\nout_features: 2\nwidth: 8\n"
                                              "edge_features: 1\nfirst_node: 1\ndtype: float64") +
                                  more);
  const auto nodes = at::randn({5, 3}, at::kDouble);
  const auto edges = at::tensor({1, 2, 3, 4, 5, 1, 2, 3, 1, 5, 1, 4}, at::kInt).view({2, 6});
  const auto features = at::randn({6, 1}, at::kDouble);
  const auto output = network->forward({nodes, edges, features}).front();
  CHECK(output.sizes() == at::IntArrayRef({5, 2}));
  const auto order = at::tensor({4, 2, 0, 1, 3}, at::kLong);  // new node i is old node order[i]
  const auto place = order.argsort();
  const auto turned = at::tensor({5, 4, 3, 2, 1, 0}, at::kLong);
  const auto renamed =
      (place.index_select(0, (edges - 1).flatten().to(at::kLong)).view({2, 6}) + 1).index_select(1, turned);
  const auto other =
      network->forward({nodes.index_select(0, order), renamed, features.index_select(0, turned)}).front();
  CHECK(at::allclose(other, output.index_select(0, order)));
  const auto changed = network->forward({nodes, edges.index_select(1, turned), features}).front();
  CHECK_FALSE(at::allclose(changed, output));  // the features belong to other edges
  const auto batched =
      network->forward({at::stack({nodes, nodes + 1}), at::stack({edges, edges}), at::stack({features, features})})
          .front();
  CHECK(at::allclose(batched[0], output));
  CHECK(at::allclose(batched[1], network->forward({nodes + 1, edges, features}).front()));
  network->forward({nodes, edges, features}).front().square().sum().backward();
  for (const auto& parameter : network->parameters()) CHECK(parameter.grad().abs().sum().item<double>() > 0);
  CHECK_THROWS_AS(network->forward({nodes, edges}), UsageError);
  CHECK_THROWS_AS(network->forward({nodes, edges.t(), features}), UsageError);
  CHECK_THROWS_WITH(network->forward({at::stack({nodes}), at::stack({edges}) + 1, at::stack({features})}),
                    ContainsSubstring("outside 1 to 5"));
}

TEST_CASE("a Hugging Face folder is a model that can be trained", "[simulation]") {
  const auto cases = std::filesystem::path(MODEL_CASES);
  const auto network = network_of("type: pretrained\npath: " + (cases / "llama-0").string());
  CHECK(network->is_training());
  const auto tokens = at::tensor({1, 2, 3, 4}, at::kInt).view({1, 4});
  const auto logits = network->forward({tokens}).front();
  CHECK(logits.dim() == 3);
  CHECK(at::allclose(network->forward({tokens, at::ones({1, 4}, at::kInt)}).front(), logits, 1e-4, 1e-5));
  logits.square().mean().backward();
  CHECK(network->parameters().front().grad().defined());
  CHECK_THROWS_AS(network->forward({tokens, tokens, tokens}), UsageError);
  CHECK_THROWS_WITH(network_of("type: pretrained\npath: nowhere"), ContainsSubstring("'nowhere' does not exist"));
}

TEST_CASE("a model in bfloat16 infers, and is not trained", "[simulation]") {
  const auto network = network_of("type: mlp\nlayers: [3, 2]\ndtype: bfloat16");
  CHECK(network->parameters().front().scalar_type() == at::kBFloat16);
  CHECK_THROWS_WITH(network_of("type: mlp\nlayers: [3, 2]\ndtype: bfloat16\noptimizer: sgd"),
                    ContainsSubstring("a model in bfloat16 only infers"));
}

TEST_CASE("a missing or damaged package of AOTInductor is refused", "[simulation]") {
  CHECK_THROWS_WITH(network_of("type: aotinductor\nfile: nowhere.pt2"), ContainsSubstring("does not exist"));
  const auto file = std::filesystem::absolute("damaged_" + std::to_string(getpid()) + ".pt2").string();
  std::ofstream(file) << "no package";
  CHECK_THROWS_WITH(network_of("type: aotinductor\nfile: " + file), ContainsSubstring("cannot be loaded"));
  std::filesystem::remove(file);
}

TEST_CASE("a C++ program makes a model from settings", "[simulation]") {
  const auto file = std::filesystem::absolute("from_settings_" + std::to_string(getpid()) + ".yaml").string();
  std::ofstream(file) << "models:\n"
                         "  line: {type: mlp, layers: [3, 1], loss: l1, optimizer: {type: sgd, lr: 0.5},\n"
                         "         schedule: {type: step, step_size: 1, gamma: 0.5}, clip_grad_norm: 2}\n"
                         "  frozen: {type: mlp, layers: [3, 1]}\n"
                         "  scaled: {type: mlp, layers: [3, 1], normalize: true}\n";
  auto model = from_settings(file, "line");
  CHECK(model.network->parameters().size() == 2);
  const auto x = at::randn({4, 3});
  const auto target = at::zeros({4, 1});
  const auto loss = model.loss(model.network->forward({x}), {target}, {});
  CHECK(at::allclose(loss, model.network->forward({x}).front().abs().mean()));
  loss.backward();
  REQUIRE(model.optimizer);
  const auto before = model.network->parameters().front().clone();
  model.optimizer->step();
  model.schedule->step();
  CHECK_FALSE(at::equal(before, model.network->parameters().front()));
  CHECK(model.schedule->last_lr() == Approx(0.25));
  CHECK(model.clip_grad_norm == 2);
  CHECK_FALSE(from_settings(file, "frozen").optimizer);
  CHECK_THROWS_WITH(from_settings(file, "lime"), ContainsSubstring("did you mean 'line'?"));
  CHECK_THROWS_WITH(from_settings(file, "scaled"),
                    ContainsSubstring("only a run of a simulation code has the statistics of a buffer"));
  CHECK_THROWS_WITH(from_settings("nowhere.yaml", "line"), ContainsSubstring("cannot be read"));
  std::filesystem::remove(file);
}

TEST_CASE("a registered C++ module is found by its name", "[simulation]") {
  models::register_module("test_line", [] { return torch::nn::AnyModule(torch::nn::Linear(3, 2)); });
  CHECK_THROWS_AS(models::register_module("test_line", {}), UsageError);
  CHECK(output_of("type: module\nname: test_line", at::randn({4, 3})).sizes() == at::IntArrayRef({4, 2}));
  CHECK_THROWS_WITH(network_of("type: module\nname: test_lin"), ContainsSubstring("did you mean 'test_line'?"));
}

TEST_CASE("a standardised network sees unit inputs and returns physical outputs", "[simulation]") {
  const auto network = network_of("type: mlp\nlayers: [2, 1]\nnormalize: true\ndtype: float64");
  auto& standardized = dynamic_cast<Standardized&>(*network);
  const auto plain = standardized.named_parameters();
  const auto x = at::randn({5, 2}, at::kDouble);
  const auto raw = network->forward({x}).front();
  const auto mean = at::full({2}, 3.0, at::kDouble);
  const auto scale = at::full({2}, 2.0, at::kDouble);
  standardized.standardize({mean, scale}, {at::full({1}, 10.0, at::kDouble), at::full({1}, 4.0, at::kDouble)});
  CHECK(at::allclose(network->forward({x * 2 + 3}).front(), raw * 4 + 10));
  CHECK_THROWS_AS(standardized.standardize({at::zeros({3}), at::zeros({3})}, {mean, scale}), UsageError);
  CHECK_THROWS_WITH(network_of("type: mlp\nlayers: [2, 1]\nnormalize: true\nflatten: true"),
                    ContainsSubstring("models.m.normalize"));
}

TEST_CASE("an unknown network or key names the nearest one", "[simulation]") {
  CHECK_THROWS_WITH(network_of("type: mpl"), ContainsSubstring("did you mean 'mlp'?"));
  CHECK_THROWS_WITH(network_of("type: mlp\nlayers: [1, 1]\nactivaton: relu"),
                    ContainsSubstring("did you mean 'activation'?"));
  CHECK_THROWS_WITH(network_of("type: mlp\nlayers: [1, 1]\nactivation: rellu"),
                    ContainsSubstring("did you mean 'relu'?"));
}
