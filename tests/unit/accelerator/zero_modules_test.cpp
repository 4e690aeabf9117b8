// Every kind of module trains under ZeRO as without it.
#include <ATen/ops/tensor.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/optim/sgd.h>

#include <map>

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "zero_fixture.hpp"

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

struct Convolution final : Learner {
  at::Tensor forward(const at::Tensor& x) override { return norm(conv(waves(x, {2, 3, 6, 6}))); }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 5, 3));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(5));
};

struct Words final : Learner {
  at::Tensor forward(const at::Tensor& x) override {
    const auto words = (x.sum().abs() * 10).to(at::kLong) + at::arange(6, at::kLong);
    return out(inner(words.remainder(20)));
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
    {"Conv2d and BatchNorm2d", [] { return std::make_shared<Convolution>(); }},
    {"Embedding", [] { return std::make_shared<Words>(); }},
};

struct Trained {
  std::vector<at::Tensor> parameters = {};
  std::vector<at::Tensor> buffers = {};
  at::Tensor answer = {};  ///< in evaluation mode
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
  trained.answer = model(at::ones({2, 2})).clone();
  accelerator.wait_for_everyone();
  return trained;
}

}  // namespace

TEST_CASE("recurrent layers, attention, convolutions, normalisations and embeddings train as at stage 0") {
  const test::Folder folder(State(), "zero_modules");
  for (const auto& [name, make] : learners) {
    INFO(name);
    const auto expected = train_learner(make, {.stage = 0});
    const auto check = [&](const ZeroConfig& zero) {
      const auto sharded = train_learner(make, zero);
      CHECK(are_equal(sharded.parameters, expected.parameters));
      CHECK(are_equal(sharded.buffers, expected.buffers));
      CHECK(at::equal(sharded.answer, expected.answer));
    };
    for (const int stage : {1, 2, 3}) {
      INFO("stage " << stage);
      check({.stage = stage});
    }
    INFO("on disk");
    check({.stage = 3, .offload_optimizer = folder.path(), .offload_parameters = folder.path(), .resident_bytes = 256});
  }
}

TEST_CASE("against one rank: the same losses, and the same parameters by SGD in fp64") {
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
  test::Shardable alone(at::kDouble);
  torch::optim::SGD sgd_alone(test::distinct(*alone), options);
  const auto expected = fifty_steps([&](const at::Tensor& x) { return alone->forward(x); }, sgd_alone, rows);
  CHECK(expected.back() < expected.front());
  for (const int stage : {1, 2, 3}) {
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = stage}});
    const int ranks = accelerator.num_processes();
    test::Shardable net(at::kDouble);
    torch::optim::SGD sgd(test::distinct(*net), options);
    auto [prepared, optimizer] = accelerator.prepare(net, sgd);
    auto& model = prepared;
    const auto mine = rows.narrow(0, accelerator.process_index() * (12 / ranks), 12 / ranks);
    const auto losses = fifty_steps([&](const at::Tensor& x) { return model(x); }, optimizer, mine);
    const auto mean = accelerator.gather(at::tensor(losses, at::kDouble)).view({ranks, 50}).mean(0);
    CHECK(at::allclose(mean, at::tensor(expected, at::kDouble), 0, 1e-6));
    CHECK(are_close(copies_of(*net), copies_of(*alone), 1e-9));
    accelerator.wait_for_everyone();
  }
}
