// Norms of each parameter's gradient against those of the whole batch on one rank, in plain LibTorch.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include <cmath>
#include <hortator/training/gradient_norms.hpp>
#include <limits>

#include "accelerator/training/training.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t width = 8, rows = 12, time_steps = 4;

torch::nn::Sequential make_net() {
  at::manual_seed(5);
  torch::nn::Sequential net(torch::nn::Linear(width, 2 * width), torch::nn::Tanh(), torch::nn::Linear(2 * width, width),
                            torch::nn::Linear(width, width));
  net[3]->as<torch::nn::Linear>()->bias.requires_grad_(false);
  return net;
}

at::Tensor make_batch() {
  at::manual_seed(6);
  return at::randn({rows, time_steps, width});
}

std::vector<double> plain_norms(double norm_type) {
  auto net = make_net();
  const auto batch = make_batch();
  (net->forward(batch) - batch).square().mean().backward();
  std::vector<double> norms;
  for (const auto& parameter : net->parameters())
    if (parameter.requires_grad()) norms.push_back(parameter.grad().norm(norm_type).item<double>());
  return norms;
}

GradientNorms norms_of(const AcceleratorOptions& options, double norm_type) {
  Accelerator accelerator(options);
  auto net = make_net();
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto& data = accelerator::Training::of(accelerator).data();
  const auto share = rows / data.size();
  auto batch = make_batch().narrow(0, data.index() * share, share);
  const auto divided = accelerator.maybe_context_parallel({{&batch, 1}});
  const auto loss = (model(batch) - batch).square().sum();
  accelerator.backward(loss, static_cast<double>(batch.numel()));
  return gradient_norms(accelerator, model, norm_type);
}

std::vector<ParallelConfig> axes() {
  const auto ranks = State().num_processes();
  const TensorPlan plan = {{"0", TensorDivision::columns}, {"2", TensorDivision::rows}};
  std::vector<ParallelConfig> all = {{}};
  if (ranks % 2 == 0) {
    all.push_back({.tensor = 2, .plan = plan});
    all.push_back({.context = 2});
  }
  if (ranks == 4) all.push_back({.tensor = 2, .context = 2, .plan = plan});
  return all;
}

void check_norms(const GradientNorms& found, const std::vector<double>& expected, double tolerance) {
  REQUIRE(found.names == std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias", "3.weight"});
  REQUIRE(found.norms.sizes() == at::IntArrayRef{static_cast<std::int64_t>(expected.size())});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(found.names[i]);
    CHECK(std::abs(found.norms[static_cast<std::int64_t>(i)].item<double>() - expected[i]) <= tolerance * expected[i]);
  }
}

}  // namespace

TEST_CASE("gradient norms are those of the whole gradients at each stage of ZeRO and along each axis") {
  for (const double norm_type : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
    const auto expected = plain_norms(norm_type);
    for (const auto& parallel : axes()) {
      for (const int stage : {0, 1, 2, 3}) {
        INFO("norm type " << norm_type << ", stage " << stage << ", tensor " << parallel.tensor.value_or(1)
                          << ", context " << parallel.context.value_or(1));
        check_norms(norms_of({.zero = {.stage = stage}, .parallel = parallel, .log_with = {}}, norm_type), expected,
                    2e-6);
      }
    }
  }
}

TEST_CASE("gradient norms of fp16 are unscaled, and their types are above 0") {
  check_norms(norms_of({.mixed_precision = Precision::fp16, .cpu = true, .log_with = {}}, 2), plain_norms(2), 1e-2);
  CHECK_THROWS_WITH(norms_of({.log_with = {}}, 0), ContainsSubstring("a type above 0"));
  CHECK_THROWS_WITH(norms_of({.log_with = {}}, -1), ContainsSubstring("a type above 0"));
}

TEST_CASE("gradient norms are 0 before backward and after zero_grad") {
  Accelerator accelerator;
  auto net = make_net();
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  CHECK(gradient_norms(accelerator, model).norms.sum().item<double>() == 0);
  accelerator.backward(model(make_batch()).square().mean());
  CHECK(gradient_norms(accelerator, model).norms.min().item<double>() > 0);
  optimizer.zero_grad();
  CHECK(gradient_norms(accelerator, model).norms.sum().item<double>() == 0);
}
