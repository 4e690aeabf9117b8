// Products in 8 bits: against an emulation in float32, and training beside bf16.
#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hortator/accelerator.hpp>
#include <hortator/lora.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/training/autocast.hpp>
#include <hortator/training/fp8.hpp>
#include <hortator/training/recompute.hpp>
#include <limits>
#include <vector>

#include "packed/fp8/scaled_cast.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using Catch::Matchers::Contains;

namespace {

struct ThreeLayersImpl : torch::nn::Module {
  explicit ThreeLayersImpl(std::int64_t width = 32) {
    torch::manual_seed(5);
    first = register_module("first", torch::nn::Linear(16, width));
    middle = register_module("middle", torch::nn::Linear(width, 48));
    last = register_module("last", torch::nn::Linear(48, 16));
  }
  at::Tensor forward(const at::Tensor& x) { return last(at::tanh(middle(at::tanh(first(x))))); }
  torch::nn::Linear first{nullptr}, middle{nullptr}, last{nullptr};
};
TORCH_MODULE(ThreeLayers);

/// The values that a tensor has in 8 bits, by a scale for the whole of it.
at::Tensor rounded(const at::Tensor& tensor, at::ScalarType type) {
  const auto factor = (type == at::kFloat8_e4m3fn ? 448.0 : 57344.0) / tensor.abs().max();
  return (tensor * factor).to(type).to(at::kFloat) / factor;
}

std::shared_ptr<models::PretrainedModel> small_gpt() {
  const test::OwnFolder folder("fp8-gpt");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "config.json")
      << R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 64, "n_embd": 64, "n_layer": 2,
        "n_head": 4, "n_positions": 32, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0})";
  torch::manual_seed(6);
  auto net = models::from_config(folder.path);
  net->train();
  return net;
}

/// Sequences that the model can learn: each token depends on the one before, and sometimes is random.
at::Tensor batch_of(std::int64_t step) {
  std::vector<std::int64_t> tokens;
  std::uint64_t state = 77 + static_cast<std::uint64_t>(step) * 7919;
  for (int row = 0; row < 8; ++row) {
    std::int64_t token = static_cast<std::int64_t>(state % 64);
    for (int i = 0; i < 17; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      token = (state >> 60U) == 0 ? static_cast<std::int64_t>((state >> 40U) % 64) : (token * 5 + 3) % 64;
      tokens.push_back(token);
    }
  }
  return at::tensor(tokens, at::kLong).view({8, 17});
}

std::vector<double> losses(Precision precision, std::int64_t steps, const Fp8Options* options = nullptr, int zero = 0) {
  Accelerator accelerator({.mixed_precision = precision, .cpu = true, .zero = {.stage = zero}});
  auto net = small_gpt();
  if (options != nullptr) fp8(net, *options);
  torch::optim::AdamW adamw(net->parameters(), torch::optim::AdamWOptions(2e-3));
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  std::vector<double> all;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto tokens = batch_of(step);
    const auto outputs = model(models::ModelInputs{.input_ids = tokens.narrow(1, 0, 16)});
    const auto loss =
        at::cross_entropy_loss(outputs.logits.flatten(0, 1).to(at::kFloat), tokens.narrow(1, 1, 16).reshape({-1}));
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    all.push_back(loss.template item<double>());
  }
  return all;
}

double mean_of_last(const std::vector<double>& values) {
  const auto count = std::min<std::size_t>(values.size(), 10);
  double sum = 0;
  for (auto i = values.size() - count; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

}  // namespace

TEST_CASE("products in 8 bits on CPUs are computed in float32, also under autocast") {
  ThreeLayers net(2048);  // sums of values in 8 bits exceed fp16
  fp8(net, {.skip_first_and_last = false});
  const at::NoGradGuard no_grad;
  const auto x = at::randn({8, 16});
  const auto expected = net(x);
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const Autocast cast(at::kCPU, type);
    const auto found = net(x).to(at::kFloat);
    CHECK(at::isfinite(found).all().item<bool>());
    CHECK(at::allclose(found, expected, 0.1, 0.1));
  }
}

TEST_CASE("products in 8 bits are those of an emulation in float32, forward and backward, for any number of rows") {
  for (const std::int64_t rows : {1, 16, 37}) {
    INFO(rows << " rows");
    ThreeLayers net, plain;
    CHECK(fp8(net) == std::vector<std::string>{"middle"});
    torch::manual_seed(rows);
    auto x = at::randn({rows, 32}).requires_grad_();
    const auto y = net->middle(x);
    const auto by_y = at::randn_like(y);
    (y * by_y).sum().backward();
    const auto x8 = rounded(x.detach(), at::kFloat8_e4m3fn),
               w8 = rounded(plain->middle->weight.detach(), at::kFloat8_e4m3fn);
    const auto g8 = rounded(by_y, at::kFloat8_e5m2);
    CHECK(at::allclose(y, at::linear(x8, w8, plain->middle->bias), 1e-5, 1e-5));
    CHECK(at::allclose(x.grad(), at::mm(g8, w8), 1e-4, 1e-5));
    CHECK(at::allclose(net->middle->weight.grad(), at::mm(g8.t(), x8), 1e-4, 1e-5));
    CHECK(at::allclose(net->middle->bias.grad(), by_y.sum(0), 1e-5, 1e-5));
    CHECK(!at::allclose(y, plain->middle(x), 1e-5, 1e-5));
  }
}

TEST_CASE("products in 8 bits on CPUs are those of LibTorch's own operator") {
  torch::manual_seed(8);
  for (const auto type : {at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    const auto a = packed::scaled(at::randn({16, 32}), type, 0, nullptr);
    const auto b = packed::scaled(at::randn({48, 32}), at::kFloat8_e4m3fn, 0, nullptr);
    const auto theirs = at::_scaled_mm(a.values, b.values.t(), a.scale, b.scale, {}, {}, at::kFloat, false);
    CHECK(at::allclose(packed::product_with_transposed(a, b, at::kFloat), theirs, 1e-5, 1e-5));
  }
}

TEST_CASE("which layers compute in 8 bits, and when") {
  ThreeLayers net, plain;
  CHECK(fp8(net, {.skip_first_and_last = false, .skip = {"middle"}}) == std::vector<std::string>{"first", "last"});
  const auto x = at::randn({4, 16});
  CHECK(!at::equal(net(x), plain(x)));
  net->eval();
  CHECK(at::equal(net(x), plain(x)));
  fp8(net, {.skip_first_and_last = false, .during_evaluation = true});
  CHECK(!at::equal(net(x), plain(x)));
  ThreeLayers odd(24);
  CHECK_THROWS_WITH(fp8(odd), Contains("multiples of 16"));
  CHECK_THROWS_WITH(fp8(net, {.skip = {"head"}}), Contains("no layer 'head'"));
  CHECK_THROWS_WITH(fp8(net, {.amax_history_length = 0}), Contains("amax_history_length"));
  CHECK_THROWS_WITH(fp8(net, {.margin = -1}), Contains("margin"));
  auto with_adapter = ThreeLayers();
  fp8(with_adapter);
  lora(with_adapter, {.rank = 2, .targets = {"middle"}});
  const auto y = with_adapter(x);
  y.sum().backward();
  CHECK(with_adapter->named_parameters()["middle.lora_B.default.weight"].grad().defined());
  CHECK(!with_adapter->middle->weight.grad().defined());
}

TEST_CASE("delayed scaling uses the values of the steps before, saturates, and NaN stays NaN") {
  const Fp8Options recent{.scaling = Fp8Scaling::delayed, .amax_history_length = 2};
  const Fp8Options largest{.scaling = Fp8Scaling::delayed, .amax_history_length = 2, .amax_most_recent = false};
  packed::AmaxHistory by_recent(recent), by_largest(largest);
  const auto next = [](packed::AmaxHistory& history, double amax) {
    return history.next(at::full({}, amax, at::kFloat)).item<double>();
  };
  const std::vector<double> amaxes = {3, 5, 2, 1, 7}, of_recent = {3, 3, 5, 2, 1}, of_largest = {3, 3, 5, 5, 2};
  for (std::size_t i = 0; i < amaxes.size(); ++i) {
    CHECK(next(by_recent, amaxes[i]) == of_recent[i]);
    CHECK(next(by_largest, amaxes[i]) == of_largest[i]);
  }
  packed::AmaxHistory history(recent);
  packed::scaled(at::ones({2, 2}), at::kFloat8_e4m3fn, 0, &history);
  const auto larger = packed::scaled(at::full({2, 2}, 9.0F), at::kFloat8_e4m3fn, 0, &history);
  CHECK((larger.values.to(at::kFloat) * larger.scale).max().item<float>() == Approx(1.0));
  const auto nan = packed::scaled(at::full({2, 2}, std::nan("")), at::kFloat8_e4m3fn, 0, nullptr);
  CHECK((nan.values.to(at::kFloat) * nan.scale).isnan().all().item<bool>());
  const auto zeros = packed::scaled(at::zeros({2, 2}), at::kFloat8_e5m2, 0, nullptr);
  CHECK((zeros.values.to(at::kFloat) * zeros.scale).equal(at::zeros({2, 2})));
}

TEST_CASE("steps of zeros and of values that are not finite leave the history of delayed scaling") {
  const auto inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const bool most_recent : {true, false}) {
    INFO("most recent: " << most_recent);
    const Fp8Options options{.scaling = Fp8Scaling::delayed, .amax_history_length = 8, .amax_most_recent = most_recent};
    packed::AmaxHistory history(options);
    const auto next = [&](double amax) { return history.next(at::full({}, amax, at::kFloat)).item<double>(); };
    CHECK(next(0) == 0);
    CHECK(next(3) == 3);  // nothing is known before
    CHECK(next(0) == 3);
    CHECK(next(inf) == 3);
    CHECK(next(nan) == 3);
    CHECK(next(2) == 3);
    CHECK(next(1) == (most_recent ? 2 : 3));
  }
}

TEST_CASE("a model that trains in 8 bits has the losses of bf16 within 1 %", "[fp8_steps]") {
  const auto* long_run = std::getenv("HORTATOR_FP8_STEPS");
  const std::int64_t steps = long_run != nullptr ? std::atoll(long_run) : 60;
  const auto expected = losses(Precision::bf16, steps);
  REQUIRE(expected.back() < 0.75 * expected.front());
  const Fp8Options delayed{.scaling = Fp8Scaling::delayed, .amax_history_length = 16, .amax_most_recent = false};
  const Fp8Options e4m3{.format = Fp8Format::e4m3};
  for (const auto* options : {static_cast<const Fp8Options*>(nullptr), &delayed, &e4m3}) {
    const auto found = losses(Precision::fp8, steps, options);
    CHECK(found != expected);
    CHECK(std::abs(mean_of_last(found) / mean_of_last(expected) - 1) < 0.01);
  }
  CHECK(losses(Precision::fp8, 5, nullptr, 3) == losses(Precision::fp8, 5));
}

TEST_CASE("layers with delayed scaling are not recomputed, those with dynamic scaling are") {
  for (const auto scaling : {Fp8Scaling::dynamic, Fp8Scaling::delayed}) {
    ThreeLayers net;
    fp8(net, {.scaling = scaling});
    const auto x = at::ones({4, 16}).set_requires_grad(true);
    const auto step = [&] { recompute([&](const at::Tensor& in) { return net(in); }, x).sum().backward(); };
    if (scaling == Fp8Scaling::dynamic) {
      step();
      const auto found = x.grad().clone();
      x.mutable_grad() = at::Tensor();
      net(x).sum().backward();
      CHECK(found.equal(x.grad()));
    } else {
      CHECK_THROWS_WITH(step(), Contains("computes in fp8 with delayed scaling, and is recomputed"));
    }
  }
}

TEST_CASE("Precision::fp8 is an error for a model without layers that can compute in 8 bits") {
  Accelerator accelerator({.mixed_precision = Precision::fp8, .cpu = true});
  CHECK(accelerator.mixed_precision() == Precision::fp8);
  ThreeLayers odd(24);
  CHECK_THROWS_WITH(accelerator.prepare_model(odd), Contains("no linear layer that can compute in 8 bits"));
}
