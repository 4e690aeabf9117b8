// LocalSGD whose averages are gradients of an outer step.
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include <hortator/error.hpp>
#include <hortator/parallel/local_sgd.hpp>
#include <hortator/parallel/outer_optimizer.hpp>
#include <hortator/training/random.hpp>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Folder;
using test::same_on_all_ranks;

namespace {

std::vector<at::Tensor> copies_of(const torch::nn::Module& net) {
  std::vector<at::Tensor> copies;
  for (const auto& parameter : net.parameters()) copies.push_back(parameter.detach().clone());
  return copies;
}

struct Course {
  OuterOptimizerOptions outer = {};
  int first = 0, rounds = 4, steps = 5;
  std::filesystem::path save = {}, load = {};
};

struct Trained {
  std::vector<at::Tensor> weights;
  double loss = 0;
};

/// A regression in which each rank sees other samples. Saves after the last average, within the scope.
Trained train(const Course& course) {
  Accelerator accelerator;
  set_seed(3);
  torch::nn::Sequential net(torch::nn::Linear(16, 96), torch::nn::Tanh(), torch::nn::Linear(96, 12));
  const auto teacher = at::randn({16, 12});
  torch::optim::SGD sgd(net->parameters(), 0.05);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  OuterOptimizer outer(accelerator, model, course.outer);
  if (!course.load.empty()) accelerator.load_state(course.load);
  Trained result;
  {
    LocalSGD local_sgd(accelerator, model, {.steps = course.steps, .outer = &outer});
    for (int step = course.first * course.steps; step < (course.first + course.rounds) * course.steps; ++step) {
      torch::manual_seed(static_cast<std::uint64_t>(1000 * step + accelerator.process_index()));
      const auto x = at::randn({16, 16});
      accelerator.backward(at::mse_loss(model(x), at::tanh(x.mm(teacher))));
      optimizer.step();
      optimizer.zero_grad();
      local_sgd.step();
    }
    if (accelerator.num_processes() > 1) CHECK(outer.steps() == course.first + course.rounds);
    if (!course.save.empty()) accelerator.save_state(course.save);
    result.weights = copies_of(*net);
  }
  for (const auto& weight : net->parameters()) CHECK(same_on_all_ranks(accelerator, weight));
  torch::manual_seed(7);
  const auto x = at::randn({512, 16});
  result.loss = at::mse_loss(net->forward(x), at::tanh(x.mm(teacher))).item<double>();
  return result;
}

}  // namespace

TEST_CASE("an outer step is one of SGD with Nesterov's momentum on the mean of the ranks' differences") {
  Accelerator accelerator;
  if (accelerator.num_processes() == 1) return;
  test::Net net;
  torch::optim::SGD sgd(net->parameters(), 1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  OuterOptimizer outer(accelerator, model, {.learning_rate = 0.6, .momentum = 0.8});
  auto expected = copies_of(*net);
  torch::optim::SGD reference(expected, torch::optim::SGDOptions(0.6).momentum(0.8).nesterov(true));
  LocalSGD local_sgd(accelerator, model, {.steps = 1, .outer = &outer});
  for (int round = 0; round < 4; ++round) {
    const double mine = 0.1 * (accelerator.process_index() + 1) * (round + 1);
    const double mean = 0.1 * (accelerator.num_processes() + 1) / 2.0 * (round + 1);
    {
      const at::NoGradGuard no_grad;
      for (const auto& parameter : net->parameters()) parameter.sub_(mine);
    }
    local_sgd.step();
    for (auto& weight : expected) weight.mutable_grad() = at::full_like(weight, mean);
    reference.step();
    const auto parameters = net->parameters();
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(at::allclose(parameters[i], expected[i], 1e-5, 1e-6));
  }
}

TEST_CASE("trainings with outer steps learn, with whole, 8-bit and sparse differences") {
  const State state;
  const auto first = train({.rounds = 1}).loss;
  for (const auto wire : {OuterWire::whole, OuterWire::int8, OuterWire::sparse})
    CHECK(train({.outer = {.wire = wire}, .rounds = 40}).loss < 0.7 * first);
}

TEST_CASE("outer momentum and what was not sent are in checkpoints: a resumed run has the same bits") {
  const State state;
  const Folder folder(state, "outer_resume");
  for (const auto wire : {OuterWire::whole, OuterWire::sparse}) {
    const OuterOptimizerOptions outer{.wire = wire};
    const auto whole = train({.outer = outer, .rounds = 6});
    train({.outer = outer, .rounds = 3, .save = folder.path() / "half"});
    const auto resumed = train({.outer = outer, .first = 3, .rounds = 3, .load = folder.path() / "half"});
    for (std::size_t i = 0; i < whole.weights.size(); ++i) CHECK(at::equal(resumed.weights[i], whole.weights[i]));
  }
}

TEST_CASE("outer optimizers that do not fit are errors on all ranks") {
  Accelerator accelerator;
  test::Net net, other;
  auto [model, other_model] = accelerator.prepare(net, other);
  const auto make = [&, &model = model](const OuterOptimizerOptions& options) {
    OuterOptimizer(accelerator, model, options);
  };
  CHECK_THROWS_WITH(make({.learning_rate = 0.0}), ContainsSubstring("OuterOptimizerOptions::learning_rate is 0"));
  CHECK_THROWS_WITH(make({.momentum = 1}), ContainsSubstring("OuterOptimizerOptions::momentum is 1"));
  CHECK_THROWS_WITH(make({.keep = 2}), ContainsSubstring("OuterOptimizerOptions::keep is 2"));
  CHECK_THROWS_WITH(make({.name = "a/b"}), ContainsSubstring("OuterOptimizerOptions::name"));
  OuterOptimizer outer(accelerator, model);
  CHECK_THROWS_WITH(make({}), ContainsSubstring("outer optimizer 'outer'"));
  if (accelerator.num_processes() > 1)
    CHECK_THROWS_WITH(LocalSGD(accelerator, other_model, {.outer = &outer}), ContainsSubstring("of another model"));
  test::Net in_double;
  in_double->to(at::kDouble);
  auto doubled = accelerator.prepare(in_double);
  CHECK_THROWS_WITH(OuterOptimizer(accelerator, doubled), ContainsSubstring("is of type"));
  Accelerator sharded({.zero = {.stage = 1}});
  test::Net sliced;
  auto sliced_model = sharded.prepare(sliced);
  if (accelerator.num_processes() > 1)
    CHECK_THROWS_WITH(OuterOptimizer(sharded, sliced_model),
                      ContainsSubstring("OuterOptimizer was called under ZeRO with one group of ranks"));
}
