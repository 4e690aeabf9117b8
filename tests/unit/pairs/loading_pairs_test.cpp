// Loads after some updates, and optimizers with moments from their constructors.
#include <torch/optim/adagrad.h>

#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/bigmodel/offload.hpp>
#include <optional>
#include <stdexcept>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/training/signum.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::distinct;
using test::Shardable;

namespace {

AcceleratorOptions sharded(int stage, const std::filesystem::path& folder = {}) {
  return {.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = stage}, .project = {.dir = folder}};
}

/// The parameters of both, and an end that all ranks reach together.
std::vector<at::Tensor> weights_of(Accelerator& accelerator, const std::vector<Shardable>& nets) {
  accelerator.wait_for_everyone();
  std::vector<at::Tensor> all;
  for (const auto& net : nets) {
    for (auto& one : copies_of(*net)) all.push_back(one);
  }
  accelerator.wait_for_everyone();
  return all;
}

/// What `step` makes of the nets in three steps is the same after a load as it was before.
template <typename Step>
void check_load(Accelerator& accelerator, const std::vector<Shardable>& nets, const Step& step) {
  for (int i = 0; i < 2; ++i) step(i);
  accelerator.save_state();
  accelerator.wait_for_checkpoint();
  const auto saved = weights_of(accelerator, nets);
  for (int i = 2; i < 5; ++i) step(i);
  const auto expected = weights_of(accelerator, nets);
  CHECK_FALSE(are_equal(saved, expected));
  accelerator.load_state();
  CHECK(are_equal(weights_of(accelerator, nets), saved));
  for (int i = 2; i < 5; ++i) step(i);
  CHECK(are_equal(weights_of(accelerator, nets), expected));
}

/// The parameters of the first layers, and the others that are trained.
std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> halves(const Shardable& net) {
  std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> both;
  for (const auto& parameter : distinct(*net)) {
    auto& half = both.first.size() < 4 ? both.first : both.second;
    if (parameter.requires_grad()) half.push_back(parameter);
  }
  return both;
}

/// A user's optimizer that makes its moments in its constructor, as Adagrad does.
class Eager final : public NamedOptimizer, public ElementwiseOptimizer {
 public:
  explicit Eager(std::vector<at::Tensor> parameters)
      : NamedOptimizer({torch::optim::OptimizerParamGroup(parameters)}, NamedOptions({{"lr", 0.01}}, {"momentum"})) {
    for (const auto& parameter : parameters) {
      auto made = std::make_unique<MomentState>();
      made->moments["momentum"] = at::full_like(parameter.detach(), 0.5);
      state()[parameter.unsafeGetTensorImpl()] = std::move(made);
    }
  }

 private:
  void update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state,
              const NamedOptions& options) override {
    parameter.sub_(state.moments["momentum"].lerp_(gradient, 0.1), options.get_lr());
  }
};

using MakeOwn = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

std::vector<at::Tensor> deferred_course(bool is_deferred, const MakeOwn& make, const ZeroConfig& zero,
                                        const std::filesystem::path& offload_to = {}) {
  auto options = sharded(0);
  options.zero = zero;
  Accelerator accelerator(options);
  const auto construct = [] { return Shardable(); };
  auto net = is_deferred ? construct_deferred(construct) : construct();
  const auto own = make(distinct(*net));
  std::optional<Offload> offload;
  if (!offload_to.empty()) offload.emplace(disk_offload(net, offload_to, {.resident_bytes = 1 << 10}));
  auto [model, optimizer] = accelerator.prepare(net, *own);
  for (int i = 0; i < 3; ++i) {
    accelerator.backward(model(batch(accelerator, i)).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  return weights_of(accelerator, {net});
}

}  // namespace

TEST_CASE("a load after some updates gives each of one model's two optimizers its moments and rate") {
  const test::Folder folder(State(), "load_two_optimizers");
  for (const int stage : {0, 1, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator(sharded(stage, folder.path() / std::to_string(stage)));
    Shardable net;
    const auto [front, back] = halves(net);
    torch::optim::AdamW adamw(front, 1e-2);
    torch::optim::SGD sgd(back, torch::optim::SGDOptions(1e-1).momentum(0.9));
    auto model = accelerator.prepare(net);
    auto [first, second, of_first, of_second] =
        accelerator.prepare(adamw, sgd, linear_warmup(adamw, {.warmup_steps = 4, .total_steps = 9}),
                            cosine_warmup(sgd, {.warmup_steps = 2, .total_steps = 9}));
    const auto step = [&, &first = first, &second = second, &of_first = of_first, &of_second = of_second](int i) {
      accelerator.backward(model(batch(accelerator, i)).square().mean());
      first.step();
      second.step();
      of_first.step();
      of_second.step();
      first.zero_grad();
      second.zero_grad();
    };
    check_load(accelerator, {net}, step);
  }
}

TEST_CASE("a load after some updates gives the optimizers of two models their moments") {
  const test::Folder folder(State(), "load_two_models");
  for (const int stage : {0, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator(sharded(stage, folder.path() / std::to_string(stage)));
    Shardable net, other;
    auto adamw = test::make_adamw(net);
    test::Signum signum(distinct(*other));
    auto [model, second] = accelerator.prepare(net, other);
    auto [optimizer, of_second] = accelerator.prepare(*adamw, signum);
    const auto step = [&, &model = model, &second = second, &optimizer = optimizer, &of_second = of_second](int i) {
      const auto x = batch(accelerator, i);
      accelerator.backward((model(x) - second(x)).square().mean() + second(x).square().mean());
      optimizer.step();
      if (i % 2 == 1) of_second.step();
      optimizer.zero_grad();
      of_second.zero_grad();
    };
    check_load(accelerator, {net, other}, step);
  }
}

TEST_CASE("a load after some updates replaces the moments of an own optimizer") {
  const test::Folder folder(State(), "load_own");
  const std::map<std::string, MakeOwn> makers = {
      {"a user's own", [](auto parameters) { return std::make_unique<test::Signum>(std::move(parameters)); }},
      {"with moments from its constructor",
       [](auto parameters) { return std::make_unique<Eager>(std::move(parameters)); }}};
  for (const auto& [name, make] : makers) {
    for (const int stage : {0, 1, 3}) {
      INFO(name << ", stage " << stage);
      Accelerator accelerator(sharded(stage, folder.path() / (name + std::to_string(stage))));
      Shardable net;
      const auto own = make(distinct(*net));
      auto [model, optimizer] = accelerator.prepare(net, *own);
      check_load(accelerator, {net}, [&, &model = model, &optimizer = optimizer](int i) {
        accelerator.backward(model(batch(accelerator, i)).square().mean());
        optimizer.step();
        optimizer.zero_grad();
      });
    }
  }
}

TEST_CASE("moments that an optimizer makes of parameters without memory are those of ordinary ones") {
  const test::Folder folder(State(), "deferred_own");
  const std::map<std::string, MakeOwn> makers = {
      {"Adagrad",
       [](auto parameters) {
         return std::make_unique<torch::optim::Adagrad>(
             std::move(parameters), torch::optim::AdagradOptions(1e-2).initial_accumulator_value(0.1));
       }},
      {"a user's own", [](auto parameters) { return std::make_unique<Eager>(std::move(parameters)); }}};
  for (const auto& [name, make] : makers) {
    INFO(name);
    for (const int stage : {0, 1, 3}) {
      INFO("stage " << stage);
      CHECK(are_equal(deferred_course(true, make, {.stage = stage}), deferred_course(false, make, {.stage = stage})));
    }
    const auto in_memory = deferred_course(false, make, {});
    CHECK(are_equal(deferred_course(true, make, {}, folder.path()), in_memory));
    const ZeroConfig in_files{.stage = 3, .offload_parameters = folder.path(), .resident_bytes = 1 << 10};
    CHECK(are_equal(deferred_course(true, make, in_files), deferred_course(false, make, {.stage = 3})));
  }
}
