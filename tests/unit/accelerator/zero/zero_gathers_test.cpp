// Gathers of stage 3 over two nodes: ahead of their use, and in the type of mixed precision.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/optim/adamw.h>

#include "unit/accelerator/zero/two_nodes.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::back_ends;
using test::batch;
using test::check_same;
using test::copies_of;
using test::plans;
using test::train_over_nodes;
using test::use_communicator;

namespace {

/// A model whose operators read parameters in each way: cast by autocast, whole within it, and whole outside of it.
struct ReaderImpl : torch::nn::Module {
  ReaderImpl() {
    at::manual_seed(5);
    embedding = register_module("embedding", torch::nn::Embedding(40, 24));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({24})));
    hidden = register_module("hidden", torch::nn::Linear(24, 24));
    head = register_module("head", std::make_shared<test::Tied>(embedding->weight));
  }
  at::Tensor forward(const at::Tensor& tokens) { return head->forward(at::tanh(hidden(norm(embedding(tokens))))); }
  at::Tensor penalty() const { return hidden->weight.square().sum() * 0.01; }

  torch::nn::Embedding embedding{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear hidden{nullptr};
  std::shared_ptr<test::Tied> head;
};
TORCH_MODULE(Reader);

struct ReaderResult {
  std::vector<double> losses = {};
  std::vector<at::Tensor> parameters = {};
};

ReaderResult train_reader(int stage, Precision precision) {
  Accelerator accelerator(
      {.mixed_precision = precision, .ddp = {.bucket_cap_mb = 1e-3}, .zero = {.stage = stage, .resident_bytes = 1}});
  Reader net;
  torch::optim::AdamW adamw(test::distinct(*net), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  ReaderResult result;
  for (int step = 0; step < 12; ++step) {
    const auto tokens = (at::arange(10, at::kLong) * (step + 3) + accelerator.process_index()).remainder(40);
    const auto loss = model(tokens).to(at::kFloat).square().mean() + net->penalty();
    result.losses.push_back(loss.item<double>());
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
  }
  result.parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return result;
}

struct Forward {
  std::vector<double> outputs = {};
  std::int64_t bytes = 0;  ///< in MPI's calls
};

Forward run_forward(const char* casts) {
  setenv("HORTATOR_GATHER_CAST", casts, 1);
  Accelerator accelerator({.mixed_precision = Precision::bf16, .zero = {.stage = 3, .resident_bytes = 1}});
  at::manual_seed(3);
  torch::nn::Sequential net;
  for (int i = 0; i < 4; ++i) net->push_back(torch::nn::Linear(torch::nn::LinearOptions(256, 256).bias(false)));
  auto model = accelerator.prepare(net);
  const auto input = at::sin(at::arange(2 * 256, at::kFloat)).view({2, 256});
  Forward forward;
  for (int pass = 0; pass < 3; ++pass) {
    const auto before = scale::traffic().bytes;
    const auto output = model(input);
    forward.bytes += scale::traffic().bytes - before;
    forward.outputs.push_back(output.to(at::kDouble).sum().item<double>());
  }
  accelerator.wait_for_everyone();
  unsetenv("HORTATOR_GATHER_CAST");
  return forward;
}

}  // namespace

TEST_CASE("over nodes, parameters gathered in the type of mixed precision train as whole ones, bit for bit") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (const auto precision : {Precision::no, Precision::bf16}) {
      INFO(communicator << ", mixed precision: " << (precision == Precision::no ? "no" : "bf16"));
      const auto second = train_reader(2, precision);
      const auto third = train_reader(3, precision);
      CHECK(third.losses == second.losses);
      CHECK(are_equal(third.parameters, second.parameters));
    }
  }
}

TEST_CASE("over nodes, training is the same whether parameters are gathered ahead or not") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (const auto& [name, plan] : plans) {
      for (const std::uint64_t resident : {0, 24 << 10}) {
        INFO(communicator << ", " << name << ", resident bytes: " << resident);
        const ZeroConfig zero = {.stage = 3, .resident_bytes = resident};
        setenv("HORTATOR_GATHER_AHEAD", "0", 1);
        const auto in_turn = train_over_nodes(zero, plan);
        unsetenv("HORTATOR_GATHER_AHEAD");
        check_same(train_over_nodes(zero, plan), in_turn);
      }
    }
  }
}

TEST_CASE("over nodes, an error on one rank waits for no other while a gather is under way") {
  use_communicator("node");
  torch::nn::Sequential net;
  for (int i = 0; i < 6; ++i) net->push_back(torch::nn::Linear(torch::nn::LinearOptions(64, 64).bias(false)));
  CHECK_THROWS_WITH(
      [&] {
        Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-3}, .zero = {.stage = 3}});
        auto model = accelerator.prepare(net);
        const at::NoGradGuard no_grad;
        model(at::ones({2, 64}));
        at::linear(at::ones({2, 64}), net->at<torch::nn::LinearImpl>(0).weight);  // starts to gather the next one
        throw Error({.what = "of the program's own"});
      }(),
      ContainsSubstring("of the program's own"));
}

TEST_CASE("over nodes, a model that computes in bf16 gathers half the bytes") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    const auto whole = run_forward("0");
    const auto cast = run_forward("1");
    CHECK(cast.outputs == whole.outputs);
    CHECK(2 * cast.bytes >= whole.bytes);
    CHECK(static_cast<double>(2 * cast.bytes) < 1.01 * static_cast<double>(whole.bytes));
  }
}
