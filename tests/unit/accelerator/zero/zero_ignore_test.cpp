// Parameters that ZeRO leaves out: each rank has all of them, as at stage 0, beside those that are sharded.
#include <ATen/ops/equal.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_course.hpp"

using namespace hortator;
using test::are_equal;
using test::batch;
using test::Outcome;
using test::Shardable;
using test::train;
using test::TrainingPlan;

namespace {

using Names = std::vector<std::string>;

const std::vector<Names>& choices() {
  // A tied weight, vectors beside a sharded weight, a frozen weight with a scalar, and all that learns.
  static const std::vector<Names> all = {{"second"},
                                         {"first.bias", "n*m", "de*"},
                                         {"frozen", "scale"},
                                         {"first", "norm", "second", "detour", "frozen", "scale"}};
  return all;
}

}  // namespace

TEST_CASE("with parameters that ZeRO leaves out, every stage trains as stage 0, bit for bit") {
  for (const auto& plan : {TrainingPlan{.max_norm = 0.05}, TrainingPlan{.accumulation = 2, .by_counts = true},
                           TrainingPlan{.accumulation = 3}, TrainingPlan{.detours = true},
                           TrainingPlan{.set_to_none = false, .plain_backward = true}}) {
    const auto expected = train({.stage = 0}, plan);
    for (const int stage : {1, 2, 3}) {
      for (const auto& names : choices()) {
        INFO("stage " << stage << ", without " << names.front() << ", " << plan.accumulation << " micro-steps"
                      << (plan.detours ? ", detours" : "") << (plan.by_counts ? ", counts" : ""));
        const auto found = train({.stage = stage, .ignore = names}, plan);
        // Norms, and at stages 2 and 3 gradients of micro-steps, are added up in another order.
        if (plan.max_norm > 0 || plan.accumulation > 1) {
          CHECK(test::are_close(found.parameters, expected.parameters, 1e-5));
        } else {
          CHECK(found.losses == expected.losses);
          CHECK(are_equal(found.parameters, expected.parameters));
        }
        for (std::size_t i = 0; i < expected.norms.size(); ++i) CHECK(found.norms[i] == Approx(expected.norms[i]));
      }
    }
  }
}

TEST_CASE("parameters that ZeRO leaves out keep gradients, moments and memory of their own") {
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator({.zero = {.stage = stage, .ignore = {"second", "scale"}}});
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    accelerator.backward(model(batch(accelerator, 0)).square().mean());
    const auto gradient = net->second->weight.grad();
    REQUIRE(gradient.defined());
    CHECK(test::same_on_all_ranks(accelerator, gradient));
    CHECK(net->first->weight.grad().defined() == (stage == 1));
    const auto norms = gradient_norms(accelerator, model);
    for (std::size_t i = 0; i < norms.names.size(); ++i) {
      if (norms.names[i] == "second.weight")
        CHECK(norms.norms[static_cast<std::int64_t>(i)].item<double>() == Approx(gradient.norm().item<double>()));
    }
    optimizer.step();
    auto& state =
        static_cast<torch::optim::AdamWParamState&>(*adamw->state().at(net->second->weight.unsafeGetTensorImpl()));
    CHECK(state.exp_avg().sizes() == net->second->weight.sizes());
    optimizer.zero_grad();
    {
      const at::NoGradGuard no_grad;
      net->second->weight.mul_(0.5);  // by every rank, on its own: as at stage 0, no error
    }
    CHECK_NOTHROW(model(batch(accelerator, 1)));
    CHECK(test::same_on_all_ranks(accelerator, net->second->weight));
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("a run with left-out parameters resumes from any stage's checkpoint, and any stage from its own") {
  const State state;
  const auto resumed = [&](const ZeroConfig& first, const ZeroConfig& second) {
    test::Folder folder(state, "zero_ignore");
    test::resume({.zero = first, .project = {.dir = folder.path()}});
    return test::resume({.zero = second, .project = {.dir = folder.path()}});
  };
  const auto expected = resumed({.stage = 0}, {.stage = 0});
  const Names names = {"second", "first.bias", "frozen"};
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    CHECK(are_equal(resumed({.stage = 0}, {.stage = stage, .ignore = names}), expected));
    CHECK(are_equal(resumed({.stage = stage, .ignore = names}, {.stage = 0}), expected));
    CHECK(are_equal(resumed({.stage = stage, .ignore = names}, {.stage = 4 - stage, .ignore = {"scale"}}), expected));
  }
}

TEST_CASE("with fp16, 16-bit parameters, Ema and averaged buffers, left-out parameters train as at stage 0") {
  const auto run = [](const ZeroConfig& zero, Precision precision, at::ScalarType type) {
    Accelerator accelerator({.mixed_precision = precision, .ddp = {.bucket_cap_mb = 3e-3}, .zero = zero});
    Shardable net(type);
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    Ema ema(accelerator, model, {.decay = 0.5});
    for (int step = 0; step < 4; ++step) {
      accelerator.backward(model(batch(accelerator, step, type)).square().mean());
      optimizer.step();
      ema.update();
      optimizer.zero_grad();
    }
    auto all = test::copies_of(*net);
    {
      const auto averaged = ema.use();
      for (const auto& one : test::copies_of(*net)) all.push_back(one);
    }
    accelerator.wait_for_everyone();
    return all;
  };
  for (const auto precision : {Precision::no, Precision::fp16, Precision::bf16}) {
    const auto expected = run({.stage = 0}, precision, at::kFloat);
    for (const int stage : {1, 2, 3}) {
      INFO("stage " << stage << ", " << to_string(precision));
      CHECK(are_equal(run({.stage = stage, .ignore = {"second", "norm"}}, precision, at::kFloat), expected));
    }
  }
}

TEST_CASE("divided parameters that ZeRO leaves out train, clip and save as those of stage 0") {
  const State state;
  if (state.num_processes() % 2 != 0) return;
  struct MlpImpl : torch::nn::Module {
    MlpImpl() {
      at::manual_seed(5);
      up = register_module("up", torch::nn::Linear(6, 16));
      down = register_module("down", torch::nn::Linear(16, 6));
      head = register_module("head", torch::nn::Linear(6, 3));
    }
    at::Tensor forward(const at::Tensor& x) { return head(down(at::tanh(up(x)))); }
    torch::nn::Linear up{nullptr}, down{nullptr}, head{nullptr};
  };
  const auto run = [&](const ZeroConfig& zero) {
    test::Folder folder(state, "zero_ignore_tensor");
    std::vector<double> seen;
    for (const bool resumes : {false, true}) {
      Accelerator accelerator(
          {.zero = zero,
           .parallel = {.tensor = 2, .plan = {{"up", TensorDivision::columns}, {"down", TensorDivision::rows}}},
           .project = {.dir = folder.path()}});
      const auto net = std::make_shared<MlpImpl>();
      torch::optim::AdamW adamw(net->parameters(), 1e-2);
      auto [model, optimizer] = accelerator.prepare(net, adamw);
      if (resumes) accelerator.load_state();
      const int replica = accelerator.process_index() / 2;
      for (int step = 0; step < 3; ++step) {
        const auto x = at::sin(at::arange(24.0F).view({4, 6}) + replica + 10 * step + (resumes ? 30 : 0));
        const auto loss = model(x).square().mean();
        seen.push_back(loss.template item<double>());
        accelerator.backward(loss);
        seen.push_back(accelerator.clip_grad_norm_(model.parameters(), 0.1).template item<double>());
        optimizer.step();
        optimizer.zero_grad();
      }
      accelerator.save_state();
      accelerator.wait_for_everyone();
    }
    return seen;
  };
  const auto expected = run({.stage = 0});
  for (const int stage : {1, 2, 3}) {
    for (const auto& names : {Names{"up"}, Names{"down.weight", "head"}}) {
      INFO("stage " << stage << ", without " << names.front());
      const auto seen = run({.stage = stage, .ignore = names});
      for (std::size_t i = 0; i < expected.size(); ++i) {
        INFO("number " << i);
        CHECK(seen.at(i) == Approx(expected[i]).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("free_memory gives back what was sharded beside what was not, and another stage continues") {
  const auto run = [](const std::vector<ZeroConfig>& configs) {
    Shardable net;
    auto adamw = test::make_adamw(net);
    int step = 0;
    for (const auto& zero : configs) {
      Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = zero});
      auto [model, optimizer] = accelerator.prepare(net, *adamw);
      for (int i = 0; i < 2; ++i) {
        accelerator.backward(model(batch(accelerator, step++)).square().mean());
        optimizer.step();
        optimizer.zero_grad();
      }
      const auto state = accelerator.get_state_dict(model);
      if (accelerator.is_main_process())
        CHECK(at::equal(state.get<at::Tensor>("second.weight"), net->second->weight.detach()));
      accelerator.free_memory();
    }
    return test::copies_of(*net);
  };
  const auto expected = run({{.stage = 0}, {.stage = 0}, {.stage = 0}});
  CHECK(are_equal(run({{.stage = 2, .ignore = {"second"}}, {.stage = 0}, {.stage = 3, .ignore = {"norm"}}}), expected));
  CHECK(are_equal(run({{.stage = 3, .ignore = {"first"}}, {.stage = 3}, {.stage = 1, .ignore = {"scale"}}}), expected));
}

TEST_CASE("a parameter outside of ZeRO that only some ranks use counts as zero on the others") {
  const auto run = [](const ZeroConfig& zero) {
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3, .find_unused_parameters = true}, .zero = zero});
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    for (int step = 0; step < 4; ++step) {
      const bool takes_detour = (step + accelerator.process_index()) % 2 == 0;
      accelerator.backward(model(batch(accelerator, step), takes_detour).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
    accelerator.wait_for_everyone();
    return test::copies_of(*net);
  };
  const auto expected = run({.stage = 0});
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    CHECK(are_equal(run({.stage = stage, .ignore = {"detour"}}), expected));
    CHECK(are_equal(run({.stage = stage, .ignore = {"first", "second"}}), expected));
  }
}

TEST_CASE("a backward pass that leaves out a parameter outside of ZeRO names it, and an unknown name is refused") {
  for (const int stage : {1, 2, 3}) {
    {
      Accelerator accelerator({.zero = {.stage = stage, .ignore = {"detour"}}});
      Shardable net;
      auto adamw = test::make_adamw(net);
      auto [model, optimizer] = accelerator.prepare(net, *adamw);
      const auto skip = [&] { accelerator.backward(model(batch(accelerator, 0), false).square().mean()); };
      accelerator.backward(model(batch(accelerator, 0)).square().mean());
      optimizer.step();
      optimizer.zero_grad();
      if (accelerator.num_processes() > 1) CHECK_THROWS_WITH(skip(), ContainsSubstring("detour.weight"));
    }
    Accelerator accelerator({.zero = {.stage = stage, .ignore = {"secnd"}}});
    Shardable net;
    CHECK_THROWS_WITH(accelerator.prepare(net),
                      ContainsSubstring("zero.ignore: the model has no parameter or module 'secnd'"));
  }
}
