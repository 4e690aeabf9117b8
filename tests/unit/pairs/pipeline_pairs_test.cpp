// Pipelines beside other features.
#include <ATen/ops/full.h>
#include <ATen/ops/mse_loss.h>
#include <torch/optim/lbfgs.h>

#include <hortator/nn/pipeline.hpp>
#include <hortator/parallel/local_sgd.hpp>
#include <limits>
#include <optional>

#include "../accelerator/first_ranks.hpp"
#include "../accelerator/fixtures.hpp"
#include "forgetful_optimizer.hpp"
#include "parallel/pipeline/staged_module.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/training/signum.hpp"

using namespace hortator;
using Catch::Matchers::ContainsSubstring;

namespace {

using Numbers = std::vector<double>;
using Layers = std::shared_ptr<PipelineModule>;

int ranks() { return State().num_processes(); }

AcceleratorOptions pipelined(AcceleratorOptions options = {}) {
  options.parallel.pipeline = ranks();
  return options;
}

Layers four_layers() {
  torch::nn::Sequential layers;
  for (int i = 0; i < 4; ++i) layers->push_back(torch::nn::Linear(6, 6));
  return pipeline(layers);
}

std::pair<at::Tensor, at::Tensor> batch_of(int step) {
  const auto x = at::sin(at::arange(48, at::kFloat) + static_cast<double>(step)).view({8, 6});
  return {x, x.flip({1}) * 0.5};
}

template <typename Trained>
double train_step(Accelerator& accelerator, Trained& model, int step, double factor = 1) {
  const auto loss = [&](auto& model, auto& part) { return at::mse_loss(model(part.first), part.second) * factor; };
  return accelerator.pipeline_step(model, batch_of(step), loss, {.micro_batches = 4}).template item<double>();
}

/// A training of four layers.
struct PipelineRun {
  explicit PipelineRun(const AcceleratorOptions& options) : accelerator(options) {
    set_seed(21);
    net = four_layers();
    adam.emplace(net->parameters(), torch::optim::AdamWOptions(0.01));
    model.emplace(accelerator.prepare(net));
    optimizer.emplace(accelerator.prepare(*adam));
  }
  double step(int number, double factor = 1) {
    const auto loss = train_step(accelerator, *model, number, factor);
    optimizer->step();
    optimizer->zero_grad();
    return loss;
  }
  Numbers weights() {
    const auto whole = accelerator.summon_full_parameters(*model);
    return numbers_in(net->parameters());
  }
  static Numbers numbers_in(const std::vector<at::Tensor>& tensors) {
    Numbers all;
    for (const auto& tensor : tensors) {
      const auto values = tensor.detach().to(at::kDouble).contiguous();
      all.insert(all.end(), values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
    }
    return all;
  }

  Accelerator accelerator;
  Layers net;
  std::optional<torch::optim::AdamW> adam;
  std::optional<Model<Layers>> model;
  std::optional<Optimizer> optimizer;
};

void check_near(const Numbers& found, const Numbers& expected, double tolerance = 1e-5) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) <= tolerance);
}

/// Compares what `run` returns along a pipeline with what it returns on one rank.
template <typename Run>
void check_as_one(const Run& run, AcceleratorOptions options = {}) {
  const Numbers found = run(pipelined(options));
  const test::FirstRanks first(1);
  options.communicator = first.handle();
  if (first.is_in()) check_near(found, run(options));
}

}  // namespace

TEST_CASE("averages of weights along a pipeline are those of one rank, also after a checkpoint") {
  const State state;
  const test::Folder folder(state, "pipeline_ema");
  check_as_one([&](const AcceleratorOptions& options) {
    const auto checkpoint = folder.path() / (options.parallel.pipeline ? "stages" : "one");
    {
      PipelineRun run(options);
      Ema ema(run.accelerator, *run.model, {.decay = 0.5});
      for (int i = 0; i < 3; ++i) run.step(i), ema.update();
      run.accelerator.save_state(checkpoint);
    }
    PipelineRun run(options);
    Ema ema(run.accelerator, *run.model, {.decay = 0.5});
    run.accelerator.load_state(checkpoint);
    run.step(3), ema.update();
    const auto averaged = ema.use();
    return run.weights();
  });
}

TEST_CASE("protection along a pipeline leaves out a bad update on all stages, and returns to an earlier one") {
  for (const auto on_nonfinite : {OnNonfinite::skip, OnNonfinite::rollback}) {
    check_as_one(
        [](const AcceleratorOptions& options) {
          PipelineRun run(options);
          for (int i = 0; i < 5; ++i) run.step(i, i == 3 ? std::numeric_limits<double>::quiet_NaN() : 1);
          return run.weights();
        },
        {.protection = {.on_nonfinite = on_nonfinite, .snapshot_every = 2}});
  }
}

TEST_CASE("hooks of a model see what the last stage of a pipeline returns") {
  check_as_one([](const AcceleratorOptions& options) {
    PipelineRun run(options);
    auto hook = run.model->add_hook({.after_forward = [](torch::nn::Module&, std::vector<at::Tensor>& results) {
      for (auto& result : results) result = result * 2;
    }});
    return Numbers{run.step(0), run.step(1)};
  });
}

TEST_CASE("two models with an optimizer each take turns along a pipeline") {
  check_as_one([](const AcceleratorOptions& options) {
    PipelineRun run(options);
    auto other = four_layers();
    torch::optim::SGD sgd(other->parameters(), 0.1);
    auto [second, optimizer] = run.accelerator.prepare(other, sgd);
    Numbers losses;
    for (int i = 0; i < 3; ++i) {
      losses.push_back(run.step(i));
      losses.push_back(train_step(run.accelerator, second, i));
      optimizer.step();
      optimizer.zero_grad();
    }
    return losses;
  });
}

TEST_CASE("an optimizer of a user's own class steps the parameters of its rank's stages") {
  check_as_one([](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    set_seed(21);
    auto net = four_layers();
    test::Signum signum(net->parameters());
    auto [model, optimizer] = accelerator.prepare(net, signum);
    Numbers losses;
    for (int i = 0; i < 3; ++i) {
      losses.push_back(train_step(accelerator, model, i));
      optimizer.step();
      optimizer.zero_grad();
    }
    return losses;
  });
}

TEST_CASE("load_state() after further updates continues a pipeline as from the checkpoint") {
  const State state;
  const test::Folder folder(state, "pipeline_load");
  PipelineRun run(pipelined());
  run.step(0);
  run.accelerator.save_state(folder.path() / "state");
  const auto expected = Numbers{run.step(1), run.step(2)};
  run.accelerator.load_state(folder.path() / "state");
  CHECK(Numbers{run.step(1), run.step(2)} == expected);
}

TEST_CASE("after free_memory() a pipeline's model and optimizer are whole, and train on as replicas") {
  const auto weights = [](const AcceleratorOptions& options) {
    PipelineRun run(options);
    for (int i = 0; i < 2; ++i) run.step(i);
    run.accelerator.free_memory();
    for (const auto& parameter : run.net->parameters()) CHECK(!parallel::is_of_other_stage(parameter));
    CHECK(run.adam->state().size() == run.net->parameters().size());
    for (int i = 2; i < 4; ++i) {  // in LibTorch alone, on each rank
      const auto [x, y] = batch_of(i);
      at::mse_loss(run.net->forward(x), y).backward();
      run.adam->step();
      run.adam->zero_grad();
    }
    return PipelineRun::numbers_in(run.net->parameters());
  };
  check_as_one(weights);
  check_as_one(weights, {.zero = {.stage = 1}});
}

TEST_CASE("an Accelerator that ends without free_memory() leaves no moments of single stages") {
  auto net = four_layers();
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(0.01));
  {
    Accelerator accelerator(pipelined());
    auto [model, optimizer] = accelerator.prepare(net, adam);
    train_step(accelerator, model, 0);
    optimizer.step();
    CHECK(!adam.state().empty());
  }
  CHECK(adam.state().empty());
}

TEST_CASE("optimizers that a pipeline would lead astray are errors") {
  Accelerator accelerator(pipelined());
  auto net = four_layers();
  auto model = accelerator.prepare(net);
  test::Forgetful forgetful(net->parameters());
  CHECK_THROWS_WITH(accelerator.prepare(forgetful), ContainsSubstring("Forgetful with parallel.pipeline"));
  torch::optim::LBFGS lbfgs(net->parameters());
  auto optimizer = accelerator.prepare(lbfgs);
  const auto closure = [&] {
    optimizer.zero_grad();
    return at::full({}, train_step(accelerator, model, 0));
  };
  CHECK_THROWS_WITH(optimizer.step(closure), ContainsSubstring("step(closure) was called with parallel.pipeline"));
}

TEST_CASE("moments that ZeRO 1 offloads step the stages of a pipeline") {
  check_as_one(
      [](const AcceleratorOptions& options) {
        PipelineRun run(options);
        for (int i = 0; i < 3; ++i) run.step(i);
        return run.weights();
      },
      {.zero = {.stage = 1, .offload_optimizer = "cpu"}});
}

TEST_CASE("LocalSGD and join_uneven_inputs are errors along a pipeline") {
  PipelineRun run(pipelined());
  CHECK_THROWS_WITH(LocalSGD(run.accelerator, *run.model, {.steps = 2}),
                    ContainsSubstring("LocalSGD was called with the mesh pipeline 2"));
  CHECK_THROWS_WITH(run.accelerator.join_uneven_inputs({*run.model}, {.even_batches = false}),
                    ContainsSubstring("join_uneven_inputs was called with parallel.pipeline"));
}
