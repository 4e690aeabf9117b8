#include <torch/nn/modules.h>

#include <exception>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

// The common layers of networks, in one model.
struct LayersImpl : torch::nn::Module {
  explicit LayersImpl(bool with_lstm) {
    text = register_module("words", torch::nn::Embedding(10, 8));
    convolution = register_module("convolution", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)));
    batch_norm = register_module("batch_norm", torch::nn::BatchNorm2d(4));
    if (with_lstm)
      recurrent = register_module("recurrent", torch::nn::LSTM(torch::nn::LSTMOptions(8, 8).batch_first(true)));
    gated = register_module("gated", torch::nn::GRU(torch::nn::GRUOptions(8, 8).batch_first(true)));
    attention = register_module("attention", torch::nn::MultiheadAttention(8, 2));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})));
    out = register_module("out", torch::nn::Linear(8, 10));
  }
  at::Tensor forward(const at::Tensor& tokens) {
    auto x = text(tokens);
    x = x + at::gelu(batch_norm(convolution(x.unsqueeze(1)))).mean(1);
    if (!recurrent.is_empty()) x = std::get<0>(recurrent(x));
    x = x + std::get<0>(gated(x));
    const auto t = x.transpose(0, 1);
    x = x + std::get<0>(attention(t, t, t)).transpose(0, 1);
    x = at::scaled_dot_product_attention(x, x, x);
    const auto logits = out(norm(x));
    computed_in = logits.scalar_type();
    return logits;
  }
  torch::nn::Embedding text{nullptr};
  torch::nn::Conv2d convolution{nullptr};
  torch::nn::BatchNorm2d batch_norm{nullptr};
  torch::nn::LSTM recurrent{nullptr};
  torch::nn::GRU gated{nullptr};
  torch::nn::MultiheadAttention attention{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear out{nullptr};
  at::ScalarType computed_in = at::kByte;
};
TORCH_MODULE(Layers);

double trained_loss(Precision precision, at::ScalarType expected, bool with_lstm) {
  Accelerator accelerator({.mixed_precision = precision, .cpu = true});
  at::manual_seed(2);
  Layers net(with_lstm);
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  const auto tokens = at::arange(24).remainder(10).view({4, 6});
  double loss = 0;
  for (int step = 0; step < 8; ++step) {
    const auto logits = model(tokens);
    CHECK(net->computed_in == expected);
    const auto cost = at::cross_entropy_loss(logits.reshape({-1, 10}), tokens.reshape({-1}));
    accelerator.backward(cost);
    accelerator.clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
    CHECK_FALSE(optimizer.step_was_skipped());
    optimizer.zero_grad();
    loss = cost.item<double>();
  }
  return loss;
}

/// Whether LibTorch has an LSTM in bfloat16 for this processor: oneDNN throws without its instructions.
bool has_lstm_in_bfloat16() {
  Accelerator accelerator({.mixed_precision = Precision::bf16, .cpu = true});
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(8, 8).batch_first(true));
  try {
    const auto scope = accelerator.autocast();
    std::get<0>(lstm(at::zeros({4, 6, 8}))).sum().backward();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

TEST_CASE("common layers train in 16 bits on the CPU as they do in 32, forward and backward") {
  if (State().num_processes() > 1) return;  // does not depend on the ranks
  const bool with_lstm = has_lstm_in_bfloat16();
  CHECK(trained_loss(Precision::bf16, at::kBFloat16, with_lstm) ==
        Approx(trained_loss(Precision::no, at::kFloat, with_lstm)).epsilon(0.05));
  // oneDNN's LSTM throws in fp16 where the processor has no such instructions.
  CHECK(trained_loss(Precision::fp16, at::kHalf, false) ==
        Approx(trained_loss(Precision::no, at::kFloat, false)).epsilon(0.01));
}
