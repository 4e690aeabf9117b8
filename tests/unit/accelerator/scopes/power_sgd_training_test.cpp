// Training whose gradients travel as products of thin factors.
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include <hortator/error.hpp>
#include <hortator/training/random.hpp>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Folder;
using test::same_on_all_ranks;

namespace {

AcceleratorOptions low_rank(PowerSGDOptions options = {.rank = 2, .start_step = 2, .min_compression = 1}) {
  return {.ddp = {.comm_hook = DDPCommunicationHookType::power_sgd, .power_sgd = options}};
}

struct Course {
  AcceleratorOptions options = {};
  int first = 0, steps = 60;
  std::filesystem::path save = {}, load = {};
};

struct Trained {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
};

/// A regression in which each rank sees other samples.
Trained train(const Course& course) {
  Accelerator accelerator(course.options);
  set_seed(3);
  torch::nn::Sequential net(torch::nn::Linear(16, 32), torch::nn::Tanh(), torch::nn::Linear(32, 12));
  const auto teacher = at::randn({16, 12});
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  if (!course.load.empty()) accelerator.load_state(course.load);
  Trained result;
  for (int step = course.first; step < course.first + course.steps; ++step) {
    torch::manual_seed(static_cast<std::uint64_t>(1000 * step + accelerator.process_index()));
    const auto x = at::randn({8, 16});
    auto scope = accelerator.accumulate(model);
    const auto loss = at::mse_loss(model(x), at::tanh(x.mm(teacher)));
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    result.losses.push_back(accelerator.reduce(loss.detach(), Reduce::mean).item<double>());
  }
  for (const auto& weight : net->parameters()) {
    CHECK(same_on_all_ranks(accelerator, weight));
    result.weights.push_back(weight.detach().clone());
  }
  if (!course.save.empty()) accelerator.save_state(course.save);
  return result;
}

double last_mean(const Trained& trained) {
  double sum = 0;
  for (auto i = trained.losses.size() - 10; i < trained.losses.size(); ++i) sum += trained.losses[i] / 10;
  return sum;
}

}  // namespace

TEST_CASE("with PowerSGD a training comes about as far as with whole gradients") {
  const auto whole = last_mean(train({.steps = 150}));
  CHECK(last_mean(train({.options = low_rank(), .steps = 150})) < 1.25 * whole);
  auto sharded = low_rank();
  sharded.zero.stage = 1;
  CHECK(last_mean(train({.options = sharded, .steps = 150})) < 1.25 * whole);
  auto accumulated = low_rank();
  accumulated.gradient_accumulation_steps = 2;
  CHECK(last_mean(train({.options = accumulated, .steps = 300})) < 1.25 * whole);
  auto mixed = low_rank();
  mixed.mixed_precision = Precision::bf16;
  CHECK(last_mean(train({.options = mixed, .steps = 150})) < 1.3 * whole);
}

TEST_CASE("a run with PowerSGD resumes bit for bit with the errors of its ranks") {
  const State state;
  const Folder folder(state, "power_sgd_resume");
  const auto whole = train({.options = low_rank(), .steps = 20});
  train({.options = low_rank(), .steps = 10, .save = folder.path() / "half"});
  const auto resumed = train({.options = low_rank(), .first = 10, .steps = 10, .load = folder.path() / "half"});
  for (std::size_t i = 0; i < whole.weights.size(); ++i) CHECK(at::equal(resumed.weights[i], whole.weights[i]));
  const auto plain = train({.first = 10, .steps = 10, .load = folder.path() / "half"});  // without its errors
  if (state.num_processes() > 1) CHECK_FALSE(at::equal(plain.weights[0], whole.weights[0]));
  train({.options = low_rank(),
         .first = 10,
         .steps = 2,
         .save = folder.path() / "later",
         .load = folder.path() / "half"});
}

TEST_CASE("PowerSGD begins with empty errors after a run that had none") {
  const State state;
  const Folder folder(state, "power_sgd_begin");
  train({.steps = 4, .save = folder.path() / "plain"});
  const auto resumed = train({.options = low_rank(), .first = 4, .steps = 4, .load = folder.path() / "plain"});
  CHECK(resumed.losses.size() == 4);
}

TEST_CASE("PowerSGD is refused where gradients do not travel as whole buckets") {
  auto options = low_rank();
  options.zero.stage = 2;
  CHECK_THROWS_WITH(Accelerator(options), ContainsSubstring("ddp.comm_hook = power_sgd with zero.stage = 2"));
  options = low_rank();
  options.reproducible = true;
  CHECK_THROWS_WITH(Accelerator(options), ContainsSubstring("ddp.comm_hook = power_sgd with reproducible = true"));
  options = low_rank();
  options.ddp.bucket_hook = [](BucketExchange&) {};
  CHECK_THROWS_WITH(Accelerator(options), ContainsSubstring("are both set"));
}
