// ZeRO's stages give what stage 0 gives.
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <limits>
#include <map>

#include "support/catch.hpp"
#include "zero_fixture.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::distinct;
using test::MakeOptimizer;
using test::Shardable;

namespace {

struct Course {
  int steps = 6;
  int accumulation = 1;
  double max_norm = 0;
  double norm_type = 2;
  bool detours = false;  ///< in every other pass the detour is left out
  bool set_to_none = true;
  bool plain_backward = false;
  bool by_counts = false;
  MakeOptimizer make_optimizer = test::make_adamw;
  at::ScalarType type = at::kFloat;
};

struct Outcome {
  std::vector<at::Tensor> parameters = {};
  std::vector<double> losses = {};
  std::vector<double> norms = {};
};

// Small buckets: several arrays, cut within parameters.
AcceleratorOptions options_of(const ZeroConfig& zero, const Course& course) {
  return {.gradient_accumulation_steps = course.accumulation,
          .ddp = {.bucket_cap_mb = 3e-3, .find_unused_parameters = course.detours},
          .zero = zero};
}

Outcome learn(AcceleratorOptions options, const Course& course) {
  Accelerator accelerator(options);
  Shardable net(course.type);
  auto own = course.make_optimizer(net);
  auto [model, optimizer] = accelerator.prepare(net, *own);
  Outcome outcome;
  for (int step = 0; step < course.steps * course.accumulation; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto y = model(batch(accelerator, step, course.type), !course.detours || step % 2 == 0);
    const auto loss = at::mse_loss(y, at::full_like(y, 0.3));
    outcome.losses.push_back(loss.item<double>());
    if (course.plain_backward) {
      loss.backward();
    } else if (course.by_counts) {
      accelerator.backward(loss * (step + 1.0), step + 1.0);
    } else {
      accelerator.backward(loss);
    }
    if (course.max_norm > 0 && accelerator.sync_gradients()) {
      const auto norm = accelerator.clip_grad_norm_(model.parameters(), course.max_norm, course.norm_type);
      outcome.norms.push_back(norm.item<double>());
    }
    optimizer.step();
    optimizer.zero_grad(course.set_to_none);
  }
  outcome.parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return outcome;
}

Outcome learn(const ZeroConfig& zero, const Course& course) { return learn(options_of(zero, course), course); }

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
    const Course course{.make_optimizer = make};
    const auto expected = learn({.stage = 0}, course);
    CHECK(expected.losses.back() < expected.losses.front());
    for (const int stage : {1, 2, 3}) {
      INFO("stage " << stage);
      const auto sharded = learn({.stage = stage}, course);
      CHECK(are_equal(sharded.parameters, expected.parameters));
      CHECK(sharded.losses == expected.losses);
    }
  }
}

TEST_CASE("so do losses that are differentiated without the Accelerator, and gradients that are set to zero") {
  const auto expected = learn({.stage = 0}, {});
  for (const int stage : {1, 2}) {
    CHECK(are_equal(learn({.stage = stage}, {.plain_backward = true}).parameters, expected.parameters));
    CHECK(are_close(learn({.stage = stage}, {.set_to_none = false}).parameters, expected.parameters, 1e-6));
  }
}

TEST_CASE("torch::optim's own step, on slices") {
  const Course course;
  auto options = options_of({.stage = 0}, course);
  options.fused_optimizer = false;
  const auto expected = learn(options, course);
  for (const int stage : {1, 2}) {
    options.zero.stage = stage;
    CHECK(are_close(learn(options, course).parameters, expected.parameters, 1e-6));
  }
}

TEST_CASE("accumulated gradients, kept as shards from stage 2 on") {
  for (const bool by_counts : {false, true}) {
    const Course course{.accumulation = 3, .by_counts = by_counts};
    const auto expected = learn({.stage = 0}, course);
    CHECK(are_equal(learn({.stage = 1}, course).parameters, expected.parameters));
    CHECK(are_close(learn({.stage = 2}, course).parameters, expected.parameters, 1e-5));
  }
}

TEST_CASE("clipping sees the gradients of all ranks' shards") {
  for (const double type : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
    const Course course{.max_norm = type == 1 ? 0.5 : 0.05, .norm_type = type};
    const auto expected = learn({.stage = 0}, course);
    CHECK(expected.norms.front() > course.max_norm);
    const auto first = learn({.stage = 1}, course);
    CHECK(are_equal(first.parameters, expected.parameters));
    CHECK(first.norms == expected.norms);
    const auto second = learn({.stage = 2}, course);
    CHECK(are_close(second.parameters, expected.parameters, 1e-5));
    for (std::size_t i = 0; i < expected.norms.size(); ++i) CHECK(second.norms[i] == Approx(expected.norms[i]));
  }
}

TEST_CASE("parameters that some passes do not use keep what they have") {
  const Course course{.detours = true};
  const auto expected = learn({.stage = 0}, course);
  for (const int stage : {1, 2}) CHECK(are_equal(learn({.stage = stage}, course).parameters, expected.parameters));
}

TEST_CASE("a parameter that is not used is named unless that was allowed") {
  for (const int stage : {1, 2}) {
    Accelerator accelerator({.zero = {.stage = stage}});
    if (stage == 1 && accelerator.num_processes() == 1) continue;  // nothing is averaged, and nobody looks
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    CHECK_THROWS_WITH(accelerator.backward(model(batch(accelerator, 0), false).sum()),
                      ContainsSubstring("no gradient to") && ContainsSubstring("detour.weight"));
  }
}

TEST_CASE("50 steps in fp32 stay within 1e-6, in bf16 within 5e-3, whatever the type in which gradients travel") {
  const Course course{.steps = 50, .max_norm = 1};
  const auto exact = learn({.stage = 0}, course);
  CHECK(are_close(learn({.stage = 2}, course).parameters, exact.parameters, 1e-6));
  auto options = options_of({.stage = 0}, course);
  options.mixed_precision = Precision::bf16;
  const auto expected = learn(options, course);
  for (const int stage : {1, 2, 3}) {
    options.zero.stage = stage;
    CHECK(are_close(learn(options, course).parameters, expected.parameters, 5e-3));
  }
  for (const auto hook : {DDPCommunicationHookType::bf16, DDPCommunicationHookType::fp16}) {
    auto rounded = options_of({.stage = 0}, course);
    rounded.ddp.comm_hook = hook;
    const auto by_whole = learn(rounded, course);
    rounded.zero.stage = 2;
    CHECK(are_close(learn(rounded, course).parameters, by_whole.parameters, 2e-2));
  }
}

TEST_CASE("parameters in bf16 are stepped in fp32, which small steps need") {
  const MakeOptimizer slow = [](Shardable& net) { return std::make_unique<torch::optim::SGD>(distinct(*net), 1e-3); };
  const Course course{.steps = 120, .make_optimizer = slow, .type = at::kBFloat16};
  Course fine = course;
  fine.type = at::kFloat;
  const auto exact = learn({.stage = 0}, fine);
  const auto distance = [&](const Outcome& outcome) {
    double sum = 0;
    for (std::size_t i = 0; i < exact.parameters.size(); ++i)
      sum += (outcome.parameters[i].to(at::kFloat) - exact.parameters[i]).abs().sum().item<double>();
    return sum;
  };
  const auto without = distance(learn({.stage = 1, .fp32_masters = false}, course));
  for (const int stage : {1, 2}) CHECK(distance(learn({.stage = stage}, course)) < 0.8 * without);
  CHECK(
      are_equal(learn({.stage = 1, .fp32_masters = false}, course).parameters, learn({.stage = 0}, course).parameters));
}

TEST_CASE("losses in fp16 are scaled; a step with an overflow on one rank is skipped on all") {
  const auto run = [](int stage, std::vector<bool>& skipped) {
    Accelerator accelerator({.mixed_precision = Precision::fp16,
                             .grad_scaler = {.init_scale = 256, .growth_interval = 2},
                             .ddp = {.bucket_cap_mb = 3e-3},
                             .zero = {.stage = stage}});
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    for (int step = 0; step < 5; ++step) {
      auto loss = model(batch(accelerator, step)).square().mean();
      if (step == 2 && accelerator.is_last_process()) loss = loss * std::numeric_limits<float>::infinity();
      accelerator.backward(loss);
      accelerator.clip_grad_norm_(model.parameters(), 0.1);
      optimizer.step();
      skipped.push_back(optimizer.step_was_skipped());
      optimizer.zero_grad();
    }
    accelerator.wait_for_everyone();
    return copies_of(*net);
  };
  std::vector<bool> expected_skips;
  const auto expected = run(0, expected_skips);
  CHECK(expected_skips == std::vector<bool>{false, false, true, false, false});
  for (const int stage : {1, 2}) {
    std::vector<bool> skips;
    CHECK(are_close(run(stage, skips), expected, 1e-4));
    CHECK(skips == expected_skips);
  }
}

TEST_CASE("groups of ranks hold replicas of the shards") {
  const Accelerator all;
  const int ranks = all.num_processes();
  const auto expected = learn({.stage = 0}, {});
  for (int group = 1; group <= ranks; ++group) {
    if (ranks % group != 0) {
      CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 2, .shard_group = group}}),
                        ContainsSubstring("zero.shard_group is " + std::to_string(group)));
      continue;
    }
    for (const int stage : {1, 2, 3})
      CHECK(are_close(learn({.stage = stage, .shard_group = group}, {}).parameters, expected.parameters, 1e-5));
  }
  CHECK(are_equal(learn(zero_config("HYBRID_SHARD"), {}).parameters, expected.parameters));
}

TEST_CASE("several models with an optimizer each, one of which rests while the other learns through it") {
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
      auto rests = accelerator.no_sync(critic);
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

TEST_CASE("recomputed layers that are used twice: what comes late goes in a second round") {
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

TEST_CASE("optimizers that do not step element by element are refused by name") {
  struct Own : torch::optim::SGD {
    using SGD::SGD;
  };
  Accelerator accelerator({.zero = {.stage = 1}});
  torch::nn::Linear net(3, 3);
  torch::optim::LBFGS lbfgs(net->parameters(), torch::optim::LBFGSOptions(0.1));
  CHECK_THROWS_WITH(accelerator.prepare(lbfgs), ContainsSubstring("torch::optim::LBFGS") &&
                                                    ContainsSubstring("depends on all parameters together"));
  Own own(net->parameters(), torch::optim::SGDOptions(0.1));
  CHECK_THROWS_WITH(accelerator.prepare(own),
                    ContainsSubstring("Own") && ContainsSubstring("may look at whole parameters"));
}

TEST_CASE("what cannot be had together with ZeRO is refused before anything is trained") {
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 4}}), ContainsSubstring("zero.stage is 4"));
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 1, .shard_group = -2}}),
                    ContainsSubstring("zero.shard_group is -2"));
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 1}, .reproducible = true}),
                    ContainsSubstring("reproducible = true"));
  CHECK_THROWS_WITH(
      Accelerator({.ddp = {.comm_hook = DDPCommunicationHookType::bf16, .error_feedback = true}, .zero = {.stage = 2}}),
      ContainsSubstring("error_feedback with zero.stage"));
  CHECK_THROWS_WITH(zero_config("FULL_SHART"), ContainsSubstring("FULL_SHARD"));
  CHECK(zero_config("SHARD_GRAD_OP").stage == 2);
}

TEST_CASE("a parameter that is written past the optimizer is named; summoned, it can be written") {
  Accelerator accelerator({.zero = {.stage = 2}});
  Shardable net;
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  {
    const at::NoGradGuard no_grad;
    const auto full = accelerator.summon_full_parameters(model);
    net->second->weight.mul_(0.5).add_(1);
    model(batch(accelerator, 0));
  }
  const auto halved = net->second->weight.detach().clone();
  CHECK(halved.mean().item<double>() == Approx(1).margin(0.1));
  {
    const at::NoGradGuard no_grad;
    const auto full = accelerator.summon_full_parameters(model, {.writeback = false});
    net->second->weight.zero_();
  }
  CHECK(at::equal(net->second->weight.detach(), halved));
  accelerator.backward(model(batch(accelerator, 0)).sum());
  optimizer.step();
  CHECK(!at::equal(net->second->weight.detach(), halved));
  accelerator.wait_for_everyone();
  {
    const at::NoGradGuard no_grad;
    net->second->weight.mul_(1);
  }
  CHECK_THROWS_WITH(model(batch(accelerator, 0)), ContainsSubstring("second.weight was written past its optimizer"));
}

TEST_CASE("free_memory gives module and optimizer their own back, and another stage goes on from there") {
  const auto run = [](const std::vector<int>& stages) {
    Shardable net;
    auto adamw = test::make_adamw(net);
    int step = 0;
    for (const int stage : stages) {
      Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = stage}});
      const auto own = adamw->param_groups()[0].params();
      auto [model, optimizer] = accelerator.prepare(net, *adamw);
      for (int i = 0; i < 2; ++i) {
        accelerator.backward(model(batch(accelerator, step++)).square().mean());
        optimizer.step();
        optimizer.zero_grad();
      }
      accelerator.free_memory();
      for (std::size_t i = 0; i < own.size(); ++i) CHECK(adamw->param_groups()[0].params()[i].is_same(own[i]));
      CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("had freed it"));
    }
    return copies_of(*net);
  };
  const auto expected = run({0, 0, 0});
  CHECK(are_equal(run({0, 2, 0}), expected));
  CHECK(are_equal(run({1, 3, 2}), expected));
}

TEST_CASE("an optimizer or a module that has gone is left alone") {
  Accelerator accelerator({.zero = {.stage = 2}});
  {
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    accelerator.backward(model(batch(accelerator, 0)).square().mean());
    optimizer.step();
  }
  CHECK_NOTHROW(accelerator.free_memory());
  Shardable net;
  {
    Accelerator other({.zero = {.stage = 1}});
    auto model = other.prepare(net);
  }
  const auto before = net->scale.detach().clone();
  {
    const at::NoGradGuard no_grad;
    net->scale.add_(1);  // each rank its own again
  }
  CHECK(at::equal(net->scale.detach(), before + 1));
  accelerator.wait_for_everyone();
}

TEST_CASE("parameters that come into an optimizer later are sharded, too") {
  const auto run = [](int stage) {
    Accelerator accelerator({.zero = {.stage = stage}});
    Shardable net;
    torch::optim::AdamW adamw(net->first->parameters(), torch::optim::AdamWOptions(1e-2));
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    for (int step = 0; step < 4; ++step) {
      if (step == 2) adamw.add_param_group(torch::optim::OptimizerParamGroup(net->second->parameters()));
      accelerator.backward(model(batch(accelerator, step)).square().mean());
      optimizer.step();
      model.zero_grad();
    }
    accelerator.wait_for_everyone();
    return copies_of(*net);
  };
  const auto expected = run(0);
  for (const int stage : {1, 2}) CHECK(are_equal(run(stage), expected));
}

TEST_CASE("the main process gets a whole state dict, or each rank its parts") {
  Accelerator accelerator({.zero = {.stage = 2}});
  Shardable net;
  const auto expected = net->second->weight.detach().clone();
  auto model = accelerator.prepare(net);
  const auto full = accelerator.get_state_dict(model);
  CHECK(full.empty() != accelerator.is_main_process());
  if (accelerator.is_main_process()) {
    CHECK(at::equal(full.get<at::Tensor>("second.weight"), expected));
    CHECK(full.get<at::Tensor>("frozen.weight").sizes() == at::IntArrayRef{5, 33});
    CHECK(full.contains("calls"));
  }
  const auto mine = accelerator.get_state_dict(model, {.sharded = true}).get<at::Tensor>("second.weight");
  const auto whole = accelerator.gather_to_main(mine);
  if (accelerator.is_main_process()) CHECK(at::equal(*whole, expected.reshape({-1})));
}
