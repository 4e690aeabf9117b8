// ZeRO's stages train as stage 0 does.
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <limits>
#include <map>

#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_course.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::distinct;
using test::MakeOptimizer;
using test::options_of;
using test::Shardable;
using test::train;
using test::TrainingPlan;

namespace {

const std::map<std::string, MakeOptimizer> makers = {
    {"AdamW", test::make_adamw},
    {"AdamW with amsgrad",
     [](Shardable& net) {
       return std::make_unique<torch::optim::AdamW>(distinct(*net), torch::optim::AdamWOptions(1e-2).amsgrad(true));
     }},
    {"Adam", [](Shardable& net) { return std::make_unique<torch::optim::Adam>(distinct(*net), 1e-2); }},
    {"SGD with momentum",
     [](Shardable& net) {
       return std::make_unique<torch::optim::SGD>(distinct(*net), torch::optim::SGDOptions(0.1).momentum(0.9));
     }},
    {"RMSprop", [](Shardable& net) { return std::make_unique<torch::optim::RMSprop>(distinct(*net), 1e-3); }},
    {"Adagrad", [](Shardable& net) { return std::make_unique<torch::optim::Adagrad>(distinct(*net), 1e-2); }},
    {"a tied parameter twice",
     [](Shardable& net) {
       return std::make_unique<torch::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(1e-2));
     }},
    {"groups",
     [](Shardable& net) {
       std::vector<torch::optim::OptimizerParamGroup> groups;
       std::vector<at::Tensor> weights;
       std::vector<at::Tensor> others;
       for (const auto& item : net->named_parameters()) {
         if (item.key() == "tied.weight") continue;
         (item.value().dim() > 1 ? weights : others).push_back(item.value());
       }
       groups.emplace_back(
           weights, std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(1e-2).weight_decay(0.3)));
       groups.emplace_back(
           others, std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(3e-2).weight_decay(0)));
       return std::make_unique<torch::optim::AdamW>(groups);
     }},
};

}  // namespace

TEST_CASE("every stage trains as stage 0, bit for bit, with each optimizer that steps element by element") {
  for (const auto& [name, make] : makers) {
    INFO(name);
    const TrainingPlan plan{.make_optimizer = make};
    const auto expected = train({.stage = 0}, plan);
    CHECK(expected.losses.back() < expected.losses.front());
    for (const int stage : {1, 2, 3}) {
      INFO("stage " << stage);
      const auto sharded = train({.stage = stage}, plan);
      CHECK(are_equal(sharded.parameters, expected.parameters));
      CHECK(sharded.losses == expected.losses);
    }
  }
}

TEST_CASE("every stage trains as stage 0 after plain backward calls, and with gradients that are set to zero") {
  const auto expected = train({.stage = 0}, {});
  for (const int stage : {1, 2}) {
    CHECK(are_equal(train({.stage = stage}, {.plain_backward = true}).parameters, expected.parameters));
    CHECK(are_close(train({.stage = stage}, {.set_to_none = false}).parameters, expected.parameters, 1e-6));
  }
}

TEST_CASE("torch::optim's own step works on slices") {
  const TrainingPlan plan;
  auto options = options_of({.stage = 0}, plan);
  options.fused_optimizer = false;
  const auto expected = train(options, plan);
  for (const int stage : {1, 2}) {
    options.zero.stage = stage;
    CHECK(are_close(train(options, plan).parameters, expected.parameters, 1e-6));
  }
}

TEST_CASE("every stage accumulates gradients as stage 0, from stage 2 on as shards") {
  for (const bool by_counts : {false, true}) {
    const TrainingPlan plan{.accumulation = 3, .by_counts = by_counts};
    const auto expected = train({.stage = 0}, plan);
    CHECK(are_equal(train({.stage = 1}, plan).parameters, expected.parameters));
    CHECK(are_close(train({.stage = 2}, plan).parameters, expected.parameters, 1e-5));
  }
}

TEST_CASE("clipping sees the gradients of all ranks' shards") {
  for (const double type : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
    const TrainingPlan plan{.max_norm = type == 1 ? 0.5 : 0.05, .norm_type = type};
    const auto expected = train({.stage = 0}, plan);
    CHECK(expected.norms.front() > plan.max_norm);
    const auto first = train({.stage = 1}, plan);
    CHECK(are_equal(first.parameters, expected.parameters));
    CHECK(first.norms == expected.norms);
    const auto second = train({.stage = 2}, plan);
    CHECK(are_close(second.parameters, expected.parameters, 1e-5));
    for (std::size_t i = 0; i < expected.norms.size(); ++i) CHECK(second.norms[i] == Approx(expected.norms[i]));
  }
}

TEST_CASE("parameters that some passes do not use train as at stage 0") {
  const TrainingPlan plan{.detours = true};
  const auto expected = train({.stage = 0}, plan);
  for (const int stage : {1, 2}) CHECK(are_equal(train({.stage = stage}, plan).parameters, expected.parameters));
}

TEST_CASE("an unused parameter is an error that names it unless unused ones are allowed") {
  for (const int stage : {1, 2}) {
    Accelerator accelerator({.zero = {.stage = stage}});
    if (stage == 1 && accelerator.num_processes() == 1) continue;  // nothing is averaged, and nothing is checked
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    CHECK_THROWS_WITH(accelerator.backward(model(batch(accelerator, 0), false).sum()),
                      ContainsSubstring("no gradient to") && ContainsSubstring("detour.weight"));
  }
}

TEST_CASE("groups of ranks hold replicas of the shards") {
  const Accelerator all;
  const int ranks = all.num_processes();
  const auto expected = train({.stage = 0}, {});
  for (int group = 1; group <= ranks; ++group) {
    if (ranks % group != 0) {
      CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 2, .shard_group = group}}),
                        ContainsSubstring("shard (" + std::to_string(group) + ") must divide ") &&
                            ContainsSubstring("zero.shard_group"));
      continue;
    }
    for (const int stage : {1, 2, 3})
      CHECK(are_close(train({.stage = stage, .shard_group = group}, {}).parameters, expected.parameters, 1e-5));
  }
  CHECK(are_equal(train(zero_config("HYBRID_SHARD"), {}).parameters, expected.parameters));
}

TEST_CASE("several models with an optimizer each, while one model is not synchronised and the other trains") {
  const auto run = [](int stage) {
    Accelerator accelerator({.zero = {.stage = stage}});
    at::manual_seed(3);
    torch::nn::Linear g(7, 7);
    torch::nn::Linear d(7, 1);
    torch::optim::AdamW of_g(g->parameters(), 1e-2);
    torch::optim::SGD of_d(d->parameters(), 1e-1);
    // in any order, before and after their models
    auto [opt_g, generator] = accelerator.prepare(of_g, g);
    auto critic = accelerator.prepare(d);
    auto opt_d = accelerator.prepare(of_d);
    for (int step = 0; step < 4; ++step) {
      const auto x = batch(accelerator, step);
      accelerator.backward(critic(generator(x).detach()).square().mean() - critic(x).mean());
      opt_d.step();
      opt_d.zero_grad();
      auto no_sync = accelerator.no_sync(critic);
      accelerator.backward(critic(generator(x)).mean());
      opt_g.step();
      opt_g.zero_grad();
      opt_d.zero_grad();
    }
    accelerator.wait_for_everyone();
    auto all = copies_of(*g);
    for (auto& one : copies_of(*d)) all.push_back(one);
    return all;
  };
  const auto expected = run(0);
  CHECK(are_equal(run(1), expected));
  CHECK(are_close(run(2), expected, 1e-6));
}

TEST_CASE("recomputed layers that are used twice: late gradients are reduced in a second round") {
  const auto run = [](int stage) {
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-9}, .zero = {.stage = stage}});
    at::manual_seed(3);
    torch::nn::Linear a(7, 7);
    struct Twice : torch::nn::Module {
      explicit Twice(torch::nn::Linear layer) : inner(register_module("inner", std::move(layer))) {}
      at::Tensor forward(const at::Tensor& x) {
        const auto layer = [this](const at::Tensor& y) { return at::tanh(inner(y)); };
        return recompute(layer, recompute(layer, x));
      }
      torch::nn::Linear inner;
    };
    auto net = std::make_shared<Twice>(a);
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    for (int step = 0; step < 4; ++step) {
      accelerator.backward(model(batch(accelerator, step).requires_grad_()).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
    accelerator.wait_for_everyone();
    return copies_of(*net);
  };
  const auto expected = run(0);
  CHECK(are_close(run(2), expected, 1e-6));
}
