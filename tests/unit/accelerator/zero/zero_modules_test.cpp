// Every kind of module trains under ZeRO as without it.
#include <ATen/ops/_transformer_encoder_layer_fwd.h>
#include <ATen/ops/tensor.h>
#include <torch/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/optim/sgd.h>
#include <torch/script.h>

#include <map>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::copies_of;

namespace {

/// A module with a loss on a batch that differs from rank to rank and from step to step.
struct Learner : torch::nn::Module {
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

at::Tensor waves(const at::Tensor& x, at::IntArrayRef sizes) {
  std::int64_t elements = 1;
  for (const auto size : sizes) elements *= size;
  return at::sin(at::arange(elements, at::kFloat) * 0.61 + x.sum()).view(sizes);
}

template <typename Layer>
struct Recurrent final : Learner {
  Recurrent() : inner(this->register_module("inner", Layer(5, 7))) {}
  at::Tensor forward(const at::Tensor& x) override { return std::get<0>(inner(waves(x, {4, 3, 5}))); }
  Layer inner;
};

struct Attention final : Learner {
  at::Tensor forward(const at::Tensor& x) override {
    const auto y = waves(x, {4, 3, 8});
    return std::get<0>(inner(y, y, y));
  }
  torch::nn::MultiheadAttention inner = register_module("inner", torch::nn::MultiheadAttention(8, 2));
};

struct Encoder final : Learner {
  at::Tensor forward(const at::Tensor& x) override { return inner(waves(x, {4, 3, 8})); }
  torch::nn::TransformerEncoderLayer inner =
      register_module("inner", torch::nn::TransformerEncoderLayer(
                                   torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0)));
};

/// In evaluation a layer is one operator, as in Python.
struct FastEncoder final : Learner {
  FastEncoder() {
    torch::nn::TransformerEncoderLayer layer(
        torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0));
    inner = register_module("inner", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(layer, 2)));
  }
  at::Tensor forward(const at::Tensor& x) override {
    auto y = waves(x, {4, 3, 8});
    if (is_training()) return inner(y);
    for (const auto& layer : *inner->layers) y = run_fast(*layer->as<torch::nn::TransformerEncoderLayer>(), y);
    return y;
  }
  static at::Tensor run_fast(const torch::nn::TransformerEncoderLayerImpl& layer, const at::Tensor& y) {
    const auto& attention = layer.self_attn;
    return at::_transformer_encoder_layer_fwd(y, 8, 2, attention->in_proj_weight, attention->in_proj_bias,
                                              attention->out_proj->weight, attention->out_proj->bias, false, false,
                                              1e-5, layer.norm1->weight, layer.norm1->bias, layer.norm2->weight,
                                              layer.norm2->bias, layer.linear1->weight, layer.linear1->bias,
                                              layer.linear2->weight, layer.linear2->bias, {}, {});
  }
  torch::nn::TransformerEncoder inner{nullptr};
};

/// A TorchScript module, whose parameters are registered in a C++ module.
struct Scripted final : Learner {
  Scripted() {
    script.register_parameter("kernel", at::randn({4, 3, 3}).requires_grad_(), false);
    script.register_parameter("scale", at::rand({4}).requires_grad_(), false);
    script.register_buffer("mean", at::zeros({4}));
    script.register_buffer("var", at::ones({4}));
    script.register_parameter("to_gates", at::randn({8, 4}).requires_grad_(), false);
    script.register_parameter("from_state", at::randn({8, 2}).requires_grad_(), false);
    script.define(R"(
def forward(self, x):
    y = torch.conv1d(x, self.kernel)
    y = torch.batch_norm(y, self.scale, None, self.mean, self.var, True, 0.1, 1e-5, False)
    h = torch.zeros([2, 2])
    c = torch.zeros([2, 2])
    for i in range(3):
        h, c = torch.lstm_cell(y[:, :, i], [h, c], self.to_gates, self.from_state)
    return h
)");
    for (const auto& parameter : script.named_parameters()) register_parameter(parameter.name, parameter.value);
    for (const auto& buffer : script.named_buffers()) register_buffer(buffer.name, buffer.value);
  }
  at::Tensor forward(const at::Tensor& x) override { return script.forward({waves(x, {2, 3, 5})}).toTensor(); }
  torch::jit::Module script{"net"};
};

/// The loss contains the norm of a gradient: backward differentiates a backward pass.
struct Penalised final : Learner {
  at::Tensor forward(const at::Tensor& x) override {
    const auto y = waves(x, {3, 6}).requires_grad_();
    const auto z = out(at::tanh(in(y)));
    if (!at::GradMode::is_enabled()) return z;
    const auto gradient = torch::autograd::grad({z.sum()}, {y}, {}, true, true)[0];
    return z.squeeze(1) + gradient.norm(2, 1);
  }
  torch::nn::Linear in = register_module("in", torch::nn::Linear(6, 5));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(5, 1));
};

/// Backward recomputes its activations.
struct Recomputed final : Learner {
  at::Tensor forward(const at::Tensor& x) override {
    const auto block = [this](const at::Tensor& y) { return at::tanh(middle(at::tanh(y))); };
    return out(recompute(block, in(waves(x, {3, 6}))));
  }
  torch::nn::Linear in = register_module("in", torch::nn::Linear(6, 7));
  torch::nn::Linear middle = register_module("middle", torch::nn::Linear(7, 7));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(7, 2));
};

struct Convolution final : Learner {
  at::Tensor forward(const at::Tensor& x) override { return norm(conv(waves(x, {2, 3, 6, 6}))); }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 5, 3));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(5));
};

struct Embedded final : Learner {
  at::Tensor forward(const at::Tensor& x) override {
    const auto text = (x.sum().abs() * 10).to(at::kLong) + at::arange(6, at::kLong);
    return out(inner(text.remainder(20)));
  }
  torch::nn::Embedding inner = register_module("inner", torch::nn::Embedding(20, 7));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(7, 3));
};

using MakeLearner = std::function<std::shared_ptr<Learner>()>;

const std::map<std::string, MakeLearner> learners = {
    {"LSTM", [] { return std::make_shared<Recurrent<torch::nn::LSTM>>(); }},
    {"GRU", [] { return std::make_shared<Recurrent<torch::nn::GRU>>(); }},
    {"MultiheadAttention", [] { return std::make_shared<Attention>(); }},
    {"TransformerEncoderLayer", [] { return std::make_shared<Encoder>(); }},
    {"TransformerEncoder and its fast path", [] { return std::make_shared<FastEncoder>(); }},
    {"TorchScript", [] { return std::make_shared<Scripted>(); }},
    {"a gradient's norm in the loss", [] { return std::make_shared<Penalised>(); }},
    {"recomputed layers", [] { return std::make_shared<Recomputed>(); }},
    {"Conv2d and BatchNorm2d", [] { return std::make_shared<Convolution>(); }},
    {"Embedding", [] { return std::make_shared<Embedded>(); }},
};

struct Trained {
  std::vector<at::Tensor> parameters = {};
  std::vector<at::Tensor> buffers = {};
  at::Tensor output = {};  ///< in evaluation mode
};

Trained train_learner(const MakeLearner& make, const ZeroConfig& zero) {
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-3}, .zero = zero});
  at::manual_seed(5);
  auto net = make();
  torch::optim::AdamW adamw(net->parameters(), torch::optim::AdamWOptions(1e-2));
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (int step = 0; step < 4; ++step) {
    accelerator.backward(model(test::batch(accelerator, step)).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  Trained trained{.parameters = copies_of(*net)};
  for (const auto& buffer : net->buffers()) trained.buffers.push_back(buffer.clone());
  const at::NoGradGuard no_grad;
  net->eval();
  trained.output = model(at::ones({2, 2})).clone();
  accelerator.wait_for_everyone();
  return trained;
}

}  // namespace

TEST_CASE("every kind of module trains as at stage 0: recurrent, attention, convolutions, TorchScript, recomputed") {
  const test::Folder folder(State(), "zero_modules");
  for (const auto& [name, make] : learners) {
    INFO(name);
    const auto expected = train_learner(make, {.stage = 0});
    const auto check = [&](const ZeroConfig& zero) {
      const auto sharded = train_learner(make, zero);
      CHECK(are_equal(sharded.parameters, expected.parameters));
      CHECK(are_equal(sharded.buffers, expected.buffers));
      CHECK(at::equal(sharded.output, expected.output));
    };
    for (const int stage : {1, 2, 3}) {
      INFO("stage " << stage);
      check({.stage = stage});
    }
    INFO("on disk");
    check({.stage = 3, .offload_optimizer = folder.path(), .offload_parameters = folder.path(), .resident_bytes = 256});
  }
}

TEST_CASE("all stages give the same losses as one rank, and the same parameters by SGD in fp64") {
  // Each rank has its rows of one batch; without norms over the batch and dropout the mean over ranks is its loss.
  const auto rows = at::sin(at::arange(12 * 7, at::kDouble).view({12, 7}) * 0.37);
  const auto fifty_steps = [](const auto& forward, auto& optimizer, const at::Tensor& x) {
    std::vector<double> losses;
    for (int step = 0; step < 50; ++step) {
      const at::Tensor loss = forward(x).square().mean();
      losses.push_back(loss.template item<double>());
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
    }
    return losses;
  };
  const auto options = torch::optim::SGDOptions(0.05).momentum(0.9);
  test::Shardable single(at::kDouble);
  torch::optim::SGD single_sgd(test::distinct(*single), options);
  const auto expected = fifty_steps([&](const at::Tensor& x) { return single->forward(x); }, single_sgd, rows);
  CHECK(expected.back() < expected.front());
  const test::Folder folder(State(), "zero_one_rank");
  const ZeroConfig on_disk = {
      .stage = 3, .offload_optimizer = "cpu", .offload_parameters = folder.path(), .resident_bytes = 256};
  for (const auto& zero : {ZeroConfig{.stage = 1}, ZeroConfig{.stage = 2}, ZeroConfig{.stage = 3}, on_disk}) {
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = zero});
    const int ranks = accelerator.num_processes();
    test::Shardable net(at::kDouble);
    torch::optim::SGD sgd(test::distinct(*net), options);
    auto [prepared, optimizer] = accelerator.prepare(net, sgd);
    auto& model = prepared;
    const auto mine = rows.narrow(0, accelerator.process_index() * (12 / ranks), 12 / ranks);
    const auto losses = fifty_steps([&](const at::Tensor& x) { return model(x); }, optimizer, mine);
    const auto mean = accelerator.gather(at::tensor(losses, at::kDouble)).view({ranks, 50}).mean(0);
    CHECK(at::allclose(mean, at::tensor(expected, at::kDouble), 0, 1e-6));
    CHECK(are_close(copies_of(*net), copies_of(*single), 1e-9));
    accelerator.wait_for_everyone();
  }
}
