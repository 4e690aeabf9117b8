// Hortator's optimizers, and those that users declare to step element by element, under ZeRO.
#include <torch/optim/sgd.h>
#include <hortator/training/optimizers.hpp>
#include <map>
#include <optional>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/training/signum.hpp"
#include "unit/accelerator/zero/zero_course.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::distinct;
using test::Shardable;
using test::Signum;
using test::train;

namespace {

/// A user's optimizer that counts its steps in a tensor that is no moment, and scales by the norm of all gradients.
class Normed final : public SlicedOptimizer {
 public:
  explicit Normed(std::vector<at::Tensor> parameters)
      : SlicedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))},
                        NamedOptions({{"lr", 0.1}}, {"whole/steps"})) {}

 private:
  void step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                       const ParameterSlices& slices) override {
    auto square = at::zeros({}, at::kDouble);
    for (const auto& one : parameters) square += one.gradient.square().sum();
    slices.sum(square);
    for (auto& one : parameters) {
      auto& steps = one.state.moments["whole/steps"];
      if (!steps.defined()) steps = at::zeros({3}, one.parameter.options());
      steps.add_(1);
      one.parameter.sub_(one.gradient, options.get_lr() / (std::sqrt(square.item<double>()) * steps[0].item<double>()));
    }
  }
};

std::vector<at::Tensor> matrices(const torch::nn::Module& module) {
  auto all = distinct(module);
  std::erase_if(all, [](const at::Tensor& one) { return one.dim() != 2 || !one.requires_grad(); });
  return all;
}

template <typename T, typename Options>
test::MakeOptimizer maker(const Options& options) {
  return [options](Shardable& net) { return std::make_unique<T>(distinct(*net), options); };
}

const std::map<std::string, test::MakeOptimizer> makers = {
    {"Lion", maker<Lion>(LionOptions{.lr = 1e-2, .weight_decay = 0.1})},
    {"NAdam", maker<NAdam>(NAdamOptions{.lr = 1e-2, .weight_decay = 0.1})},
    {"RAdam", maker<RAdam>(RAdamOptions{.lr = 1e-1, .betas = {0.9, 0.6}})},
    {"schedule-free AdamW", maker<ScheduleFreeAdamW>(ScheduleFreeAdamWOptions{.lr = 1e-2, .weight_decay = 0.1})},
    {"LAMB", maker<Lamb>(LambOptions{.lr = 1e-2, .weight_decay = 0.1})},
    {"Adafactor", maker<Adafactor>(AdafactorOptions{.lr = 1e-2, .weight_decay = 0.1})},
    {"Muon", [](Shardable& net) { return std::make_unique<Muon>(matrices(*net), MuonOptions{.lr = 1e-2}); }},
    {"8-bit AdamW", maker<AdamW8bit>(AdamW8bitOptions{.lr = 1e-2, .weight_decay = 0.1})},
    {"a user's own that looks at slices", [](Shardable& net) { return std::make_unique<Normed>(distinct(*net)); }},
    {"a user's own", [](Shardable& net) { return std::make_unique<Signum>(distinct(*net)); }}};

/// Steps with one optimizer, which stops and resumes from a checkpoint at another stage in the middle.
std::vector<at::Tensor> train_in_two_runs(const test::MakeOptimizer& make, const std::filesystem::path& folder,
                                          const std::vector<int>& stages) {
  std::vector<at::Tensor> parameters;
  for (std::size_t run = 0; run < stages.size(); ++run) {
    Accelerator accelerator(
        {.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = stages[run]}, .project = {.dir = folder}});
    Shardable net;
    auto plain = make(net);
    auto [model, optimizer] = accelerator.prepare(net, *plain);
    if (run > 0) accelerator.load_state();
    for (int step = 0; step < 3; ++step) {
      accelerator.backward(model(batch(accelerator, static_cast<int>(run) * 3 + step)).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
    accelerator.save_state();
    accelerator.wait_for_checkpoint();
    parameters = copies_of(*net);
    accelerator.wait_for_everyone();
  }
  return parameters;
}

}  // namespace

TEST_CASE("every stage trains as stage 0 with each of Hortator's optimizers and with a user's own") {
  for (const auto& [name, make] : makers) {
    INFO(name);
    const auto expected = train(ZeroConfig{.stage = 0}, {.make_optimizer = make});
    CHECK(expected.losses.back() < expected.losses.front());
    for (const int stage : {1, 2, 3}) {
      INFO("stage " << stage);
      CHECK(
          are_close(train(ZeroConfig{.stage = stage}, {.make_optimizer = make}).parameters, expected.parameters, 1e-6));
    }
  }
}

TEST_CASE("checkpoints hold the optimizers' states at any stage") {
  for (const auto& [name, make] : makers) {
    INFO(name);
    const Accelerator all;
    const auto run = [&](const std::vector<int>& stages) {
      const test::Folder folder(all, "optimizers");
      return train_in_two_runs(make, folder.path(), stages);
    };
    const auto expected = run({0, 0});
    CHECK(are_close(run({2, 1}), expected, 1e-6));
    CHECK(are_close(run({0, 3}), expected, 1e-6));
  }
}

TEST_CASE("optimizers get whole states back when the Accelerator frees them") {
  for (const auto* name : {"8-bit AdamW", "Adafactor", "LAMB"}) {
    INFO(name);
    const auto states = [&](int stage) {
      Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = stage}});
      Shardable net;
      auto plain = makers.at(name)(net);
      auto [model, optimizer] = accelerator.prepare(net, *plain);
      accelerator.backward(model(batch(accelerator, 0)).square().mean());
      optimizer.step();
      accelerator.free_memory();
      std::vector<at::Tensor> all;
      for (const auto& parameter : distinct(*net)) {
        const auto found = plain->state().find(parameter.unsafeGetTensorImpl());
        if (found == plain->state().end()) continue;
        for (const auto& [moment, tensor] : static_cast<MomentState&>(*found->second).moments) {
          if (tensor.defined()) all.push_back(tensor.to(at::kFloat));
        }
      }
      CHECK_FALSE(all.empty());
      return all;
    };
    const auto expected = states(0);
    CHECK(are_close(states(1), expected, 1e-6));
    CHECK(are_close(states(3), expected, 1e-6));
  }
}

TEST_CASE("8-bit moments take about two bytes for each parameter, and train as AdamW's") {
  Shardable net;
  AdamW8bit plain(distinct(*net));
  std::int64_t bytes = 0, elements = 0;
  for (auto& parameter : distinct(*net)) {
    if (!parameter.requires_grad()) continue;
    parameter.mutable_grad() = at::ones_like(parameter);
    elements += parameter.numel();
  }
  plain.step();
  for (const auto& [parameter, state] : plain.state()) {
    for (const auto& [name, moment] : static_cast<MomentState&>(*state).moments)
      bytes += static_cast<std::int64_t>(moment.nbytes());
  }
  CHECK(static_cast<double>(bytes) < 2.4 * static_cast<double>(elements));  // small parameters fill blocks in part
  const auto adamw = train(ZeroConfig{.stage = 0}, {.steps = 20});
  const auto ours = train(ZeroConfig{.stage = 0}, {.steps = 20, .make_optimizer = makers.at("8-bit AdamW")});
  CHECK(ours.losses.back() < ours.losses.front() / 2);
  CHECK(ours.losses.back() == Approx(adamw.losses.back()).epsilon(0.1));
}

TEST_CASE("schedule-free weights are exchanged at every stage, and a step with those to evaluate is refused") {
  const auto run = [](int stage) {
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = stage}});
    Shardable net;
    ScheduleFreeAdamW plain(distinct(*net), {.lr = 1e-2});
    auto [model, optimizer] = accelerator.prepare(net, plain);
    std::vector<at::Tensor> all;
    for (int step = 0; step < 4; ++step) {
      accelerator.backward(model(batch(accelerator, step)).square().mean());
      optimizer.step();
      optimizer.zero_grad();
      optimizer.eval();
      for (auto& one : copies_of(*net)) all.push_back(one);
      accelerator.wait_for_everyone();
      if (step == 3) break;
      optimizer.train();
    }
    accelerator.backward(model(batch(accelerator, 5)).square().mean());
    CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("steps after eval()"));
    accelerator.wait_for_everyone();
    return all;
  };
  const auto expected = run(0);
  CHECK_FALSE(are_equal({expected.front()}, {expected[expected.size() / 4]}));
  for (const int stage : {1, 2, 3}) CHECK(are_close(run(stage), expected, 1e-6));
}

TEST_CASE("train() and eval() of an optimizer that has one set of weights are refused") {
  Accelerator accelerator;
  Shardable net;
  Lion lion(distinct(*net));
  auto [model, optimizer] = accelerator.prepare(net, lion);
  CHECK_THROWS_WITH(optimizer.eval(), ContainsSubstring("optimizer.eval()") && ContainsSubstring("ScheduleFreeAdamW"));
}

TEST_CASE("a declared optimizer whose state cannot be sharded is refused by name") {
  struct Unknown : torch::optim::OptimizerCloneableOptions<Unknown> {};
  struct Opaque : torch::optim::Optimizer, ElementwiseOptimizer {
    explicit Opaque(std::vector<at::Tensor> parameters)
        : Optimizer(std::move(parameters), std::make_unique<Unknown>()) {}
    at::Tensor step(LossClosure /*closure*/ = nullptr) override { return {}; }
  };
  struct Declared : torch::optim::SGD, ElementwiseOptimizer {
    using SGD::SGD;
  };
  Accelerator accelerator({.zero = {.stage = 1}});
  torch::nn::Linear net(3, 3);
  Opaque opaque(net->parameters());
  CHECK_THROWS_WITH(accelerator.prepare(opaque), ContainsSubstring("Opaque") && ContainsSubstring("NamedOptimizer"));
  Declared declared(net->parameters(), torch::optim::SGDOptions(0.1));
  CHECK_NOTHROW(accelerator.prepare(declared));
}

TEST_CASE(
    "optimizers that look at slices are the user's own again after the Accelerator, and a rank steps them alone") {
  const State state;
  for (const auto* name : {"LAMB", "Adafactor", "Muon", "8-bit AdamW", "a user's own that looks at slices"}) {
    for (const bool frees : {true, false}) {
      INFO(name << (frees ? ", after free_memory" : ", after the Accelerator"));
      Shardable net;
      auto plain = makers.at(name)(net);
      std::optional<Model<Shardable>> model;
      std::optional<Optimizer> optimizer;  // handles outlive the Accelerator
      {
        Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = 1}});
        model.emplace(accelerator.prepare(net));
        optimizer.emplace(accelerator.prepare(*plain));
        accelerator.backward((*model)(batch(accelerator, 0)).square().mean());
        optimizer->step();
        optimizer->zero_grad();
        if (frees) accelerator.free_memory();
      }
      if (state.is_main_process()) {
        const auto before = net->second->weight.detach().clone();
        net->forward(at::ones({2, 7})).square().mean().backward();
        plain->step();
        CHECK_FALSE(at::equal(net->second->weight, before));
      }
      state.wait_for_everyone();
    }
  }
}
