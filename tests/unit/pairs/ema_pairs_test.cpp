// Averages of weights beside offloading, free_memory, load_state, other models and several optimizers.
#include <hortator/bigmodel/offload.hpp>
#include <optional>
#include <stdexcept>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::Net;
using test::Shardable;

namespace {

/// A model with averages, which may be in files.
struct AveragedRun {
  explicit AveragedRun(AcceleratorOptions options, at::ScalarType type = at::kFloat,
                       const std::filesystem::path& offload_to = {})
      : accelerator(in_small_buckets(std::move(options))), net(type), type(type) {
    if (!offload_to.empty())
      offload.emplace(disk_offload(net, offload_to, {.resident_bytes = 1 << 10, .page_bytes = 1 << 10}));
    model.emplace(accelerator.prepare(net));
    optimizer.emplace(accelerator.prepare(*plain));
    ema.emplace(accelerator, *model, EmaOptions{.decay = 0.5});
  }
  static AcceleratorOptions in_small_buckets(AcceleratorOptions options) {
    options.ddp.bucket_cap_mb = 3e-3;
    return options;
  }

  void step(int number) {
    accelerator.backward((*model)(batch(accelerator, number, type)).to(at::kFloat).square().mean());
    optimizer->step();
    optimizer->zero_grad();
    ema->update();
  }
  /// The weights, with an end that all ranks reach together.
  std::vector<at::Tensor> weights() {
    accelerator.wait_for_everyone();
    auto copies = copies_of(*net);
    accelerator.wait_for_everyone();
    return copies;
  }
  std::vector<at::Tensor> averages() {
    const auto scope = ema->use();
    return weights();
  }

  Accelerator accelerator;
  Shardable net;
  at::ScalarType type;
  std::unique_ptr<torch::optim::Optimizer> plain = test::make_adamw(net);
  std::optional<Offload> offload;
  std::optional<Model<Shardable>> model;
  std::optional<Optimizer> optimizer;
  std::optional<Ema> ema;
};

/// The averages and the weights after some steps.
std::vector<at::Tensor> averaged_course(AcceleratorOptions options, at::ScalarType type,
                                        const std::filesystem::path& offload_to = {}) {
  AveragedRun run(std::move(options), type, offload_to);
  for (int i = 0; i < 3; ++i) run.step(i);
  auto all = run.averages();
  for (auto& one : run.weights()) all.push_back(one);
  run.step(3);
  for (auto& one : run.averages()) all.push_back(one);
  return all;
}

/// A loss of the value 0 whose gradient by `parameter` is infinite.
at::Tensor overflow_of(const at::Tensor& parameter) { return (parameter - parameter.detach()).sqrt().sum(); }

/// One model whose layers have an optimizer each, and the averages that the loop computes.
struct TwoOptimizersRun {
  explicit TwoOptimizersRun(bool late)
      : accelerator({.mixed_precision = Precision::fp16, .grad_scaler = {.init_scale = 64, .late_verdict = late}}) {}

  /// `of_hidden`, `of_out`: whether that layer's optimizer gets a gradient that overflows.
  void step(int number, bool of_hidden, bool of_out) {
    const auto x = at::full({4, 3}, 0.1 * (number + accelerator.process_index()));
    auto loss = model(x).to(at::kFloat).square().mean();
    if (of_hidden) loss = loss + overflow_of(net->hidden->bias);
    if (of_out) loss = loss + overflow_of(net->out->bias);
    accelerator.backward(loss);
    first.step();
    second.step();
    first.zero_grad();
    second.zero_grad();
    ema.update();
    if (of_hidden && of_out) return;
    const auto now = copies_of(*net);
    const double weight = ++counts == 1 ? 1 : 0.5;
    for (std::size_t i = 0; i < now.size(); ++i) expected[i].lerp_(now[i], weight);
  }

  Accelerator accelerator;
  Net net = [] {
    at::manual_seed(3);
    return Net();
  }();
  torch::optim::AdamW of_hidden{net->hidden->parameters(), 1e-2};
  torch::optim::AdamW of_out{net->out->parameters(), 1e-1};
  Model<Net> model = accelerator.prepare(net);
  Optimizer first = accelerator.prepare(of_hidden);
  Optimizer second = accelerator.prepare(of_out);
  Ema ema{accelerator, model, {.decay = 0.5}};
  std::vector<at::Tensor> expected = copies_of(*net);
  int counts = 0;
};

}  // namespace

TEST_CASE("averages of parameters in files are those of parameters in memory") {
  const test::Folder folder(State(), "ema_offload");
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const ZeroConfig in_files{
        .stage = 3, .offload_optimizer = folder.path(), .offload_parameters = folder.path(), .resident_bytes = 1 << 10};
    CHECK(are_equal(averaged_course({.zero = in_files}, type), averaged_course({.zero = {.stage = 3}}, type)));
    CHECK(are_equal(averaged_course({}, type, folder.path()), averaged_course({}, type)));
  }
}

TEST_CASE("averages that outlive free_memory throw, and the next model's checkpoints hold only its own") {
  const test::Folder folder(State(), "ema_freed");
  for (const int stage : {0, 3}) {
    INFO("stage " << stage);
    AveragedRun run({.zero = {.stage = stage}, .project = {.dir = folder.path() / std::to_string(stage)}});
    run.step(0);
    {
      const auto scope = run.ema->use();
      CHECK_THROWS_WITH(run.accelerator.free_memory(),
                        ContainsSubstring("free_memory() was called while a model has averaged weights"));
    }
    const auto trained = run.weights();
    run.accelerator.free_memory();
    CHECK(are_equal(copies_of(*run.net), trained));
    CHECK_THROWS_WITH(run.ema->update(), ContainsSubstring("A prepared model was used after"));
    CHECK_THROWS_WITH(run.ema->use(), ContainsSubstring("A prepared model was used after"));

    Net next;
    torch::optim::SGD sgd(next->parameters(), 0.1);
    auto [model, optimizer] = run.accelerator.prepare(next, sgd);
    run.accelerator.save_state();
    run.accelerator.wait_for_checkpoint();
    CHECK_NOTHROW(run.accelerator.load_state());
    Ema other(run.accelerator, model);  // of the same name
    CHECK_THROWS_WITH(run.accelerator.load_state(), ContainsSubstring("it holds no averaged weights 'ema'"));
    run.accelerator.wait_for_everyone();
  }
}

TEST_CASE("a scope of averaged weights that outlives its Accelerator throws, unless an exception ends it") {
  const auto outlive = [](bool with_exception) {
    Shardable net;
    std::optional<Accelerator> accelerator(std::in_place);
    auto model = accelerator->prepare(net);
    Ema ema(*accelerator, model);
    const auto scope = ema.use();
    accelerator.reset();
    if (with_exception) throw std::runtime_error("evaluation has failed");
  };
  CHECK_THROWS_WITH(outlive(false), ContainsSubstring("The scope of Ema::use() ends after its Accelerator"));
  CHECK_THROWS_WITH(outlive(true), ContainsSubstring("evaluation has failed"));
}

TEST_CASE("a load after some updates replaces averages and counts, and is refused while a model has them") {
  const test::Folder folder(State(), "ema_loaded");
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    AveragedRun run({.zero = {.stage = stage}, .project = {.dir = folder.path() / std::to_string(stage)}});
    for (int i = 0; i < 2; ++i) run.step(i);
    run.accelerator.save_state();
    run.accelerator.wait_for_checkpoint();
    const auto saved = run.averages();
    for (int i = 2; i < 5; ++i) run.step(i);
    const auto expected = run.averages();
    {
      const auto scope = run.ema->use();
      CHECK_THROWS_WITH(run.accelerator.load_state(),
                        ContainsSubstring("load_state() was called while a model has averaged weights"));
      CHECK_THROWS_WITH(run.accelerator.load_checkpoint_in_model(*run.model, folder.path()),
                        ContainsSubstring("load_checkpoint_in_model() was called while a model has averaged weights"));
    }
    run.accelerator.load_state();
    CHECK(run.ema->updates() == 2);
    CHECK(run.ema->decay() == 0.5);
    CHECK(are_equal(run.averages(), saved));
    for (int i = 2; i < 5; ++i) run.step(i);
    CHECK(run.ema->updates() == 5);
    CHECK(are_equal(run.averages(), expected));
  }
}

TEST_CASE("two models have averages of their own, and while one has them the other's optimizer step is refused") {
  Accelerator accelerator({.zero = {.stage = 2}});
  Shardable net;
  Net small;
  auto adamw = test::make_adamw(net);
  torch::optim::SGD sgd(small->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  auto [other, of_other] = accelerator.prepare(small, sgd);
  Ema ema(accelerator, model, {.decay = 0.5, .name = "first"});
  Ema of_small(accelerator, other, {.decay = 0.9, .name = "second"});
  const auto weights = [&](const torch::nn::Module& module) {
    accelerator.wait_for_everyone();
    auto copies = copies_of(module);
    accelerator.wait_for_everyone();
    return copies;
  };
  auto expected = weights(*net);
  auto expected_small = weights(*small);
  const auto follow = [](std::vector<at::Tensor>& averages, const std::vector<at::Tensor>& now, double weight) {
    for (std::size_t i = 0; i < now.size(); ++i) averages[i].lerp_(now[i], weight);
  };
  for (int i = 0; i < 3; ++i) {
    accelerator.backward(model(batch(accelerator, i)).square().mean() +
                         other(at::full({2, 3}, 0.1 * i)).square().mean());
    optimizer.step();
    of_other.step();
    optimizer.zero_grad();
    of_other.zero_grad();
    ema.update();
    of_small.update();
    follow(expected, weights(*net), i == 0 ? 1 : 0.5);
    follow(expected_small, weights(*small), i == 0 ? 1 : 0.1);
    const auto trained = weights(*small);
    const auto scope = ema.use();
    CHECK(are_close(weights(*net), expected, 1e-6));
    accelerator.backward(other(at::ones({2, 3})).square().mean());
    CHECK_THROWS_WITH(of_other.step(),
                      ContainsSubstring("optimizer.step() was called while a model has averaged weights"));
    of_other.zero_grad();
    CHECK(are_equal(weights(*small), trained));
  }
  const auto scope = of_small.use();
  CHECK(are_close(weights(*small), expected_small, 1e-6));
}

TEST_CASE("averages take part in a step that one of a model's optimizers has made, and none that all have skipped") {
  for (const bool late : {false, true}) {
    INFO((late ? "late" : "exact") << " verdicts");
    TwoOptimizersRun run(late);
    const auto before = copies_of(*run.net);
    run.step(0, false, false);
    run.step(1, true, false);
    CHECK(run.ema.updates() == 2);
    run.step(2, false, true);
    CHECK(run.ema.updates() == 3);
    run.step(3, true, true);
    CHECK(run.ema.updates() == 3);
    run.step(4, false, false);
    CHECK(run.ema.updates() == 4);
    CHECK_FALSE(are_equal(copies_of(*run.net), before));
    const auto scope = run.ema.use();
    CHECK(are_close(copies_of(*run.net), run.expected, 1e-6));
  }
}
