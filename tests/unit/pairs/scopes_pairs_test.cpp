// What join_uneven_inputs and LocalSGD refuse on all ranks, and how training continues after an error within them.
#include <stdexcept>

#include "../accelerator/fixtures.hpp"
#include "forgetful_optimizer.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::copies_of;

namespace {

AcceleratorOptions uneven() { return {.data = {.even_batches = false}}; }

/// A model in one of the two scopes, in which ranks may take different numbers of steps.
struct Scoped {
  explicit Scoped(bool local) {
    if (local) {
      local_sgd.emplace(accelerator, model, LocalSGDOptions{.steps = 2});
    } else {
      joined.reset(new JoinUnevenInputs(accelerator.join_uneven_inputs({model})));
    }
  }
  Accelerator accelerator{uneven()};
  torch::nn::Linear net{3, 2};
  torch::optim::SGD sgd{net->parameters(), 0.1};
  Model<torch::nn::Linear> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(sgd);
  std::optional<LocalSGD> local_sgd;
  std::unique_ptr<JoinUnevenInputs> joined;
};

const char* name_of(bool local) { return local ? "within LocalSGD" : "within join_uneven_inputs"; }

/// Where a step ends early, on all ranks.
enum class EarlyEnd { nowhere, before_backward, within_backward, before_step };

void step_to(EarlyEnd end, Accelerator& accelerator, Model<torch::nn::Linear>& model, Optimizer& optimizer,
             double value) {
  const auto result = model(at::full({2, 3}, value + accelerator.process_index()));
  if (end == EarlyEnd::before_backward) throw std::runtime_error("planted");
  if (end == EarlyEnd::within_backward)
    result.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("planted"); });
  accelerator.backward(result.square().mean());
  if (end == EarlyEnd::before_step) throw std::runtime_error("planted");
  optimizer.step();
  optimizer.zero_grad();
}

std::vector<at::Tensor> train_after_an_error(EarlyEnd end) {
  Accelerator accelerator(uneven());
  at::manual_seed(3);
  torch::nn::Linear net(3, 2);
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  try {
    const auto joined = accelerator.join_uneven_inputs({model});
    step_to(EarlyEnd::nowhere, accelerator, model, optimizer, 1);
    if (end != EarlyEnd::nowhere) step_to(end, accelerator, model, optimizer, 2);
  } catch (const std::runtime_error&) {
    optimizer.zero_grad();
  }
  accelerator.wait_for_everyone();
  {
    const auto joined = accelerator.join_uneven_inputs({model});
    for (int step = 0; step <= accelerator.process_index(); ++step)
      step_to(EarlyEnd::nowhere, accelerator, model, optimizer, 3);
  }
  step_to(EarlyEnd::nowhere, accelerator, model, optimizer, 4);
  CHECK(test::same_on_all_ranks(accelerator, net->weight));
  return copies_of(*net);
}

}  // namespace

TEST_CASE("join_uneven_inputs and LocalSGD refuse each other, and themselves") {
  for (const bool local : {false, true}) {
    Scoped one(local);
    CHECK_THROWS_WITH(LocalSGD(one.accelerator, one.model, {.steps = 2}),
                      ContainsSubstring(std::string("LocalSGD was called ") + name_of(local)));
    CHECK_THROWS_WITH(one.accelerator.join_uneven_inputs({one.model}),
                      ContainsSubstring(std::string("join_uneven_inputs was called ") + name_of(local)));
  }
}

TEST_CASE("what all ranks must do together is refused where they may take different numbers of steps") {
  for (const bool local : {false, true}) {
    Scoped one(local);
    CHECK_THROWS_WITH(one.accelerator.load_state("nowhere"),
                      ContainsSubstring(std::string("load_state() was called ") + name_of(local)));
    CHECK_THROWS_WITH(one.accelerator.free_memory(),
                      ContainsSubstring(std::string("free_memory() was called ") + name_of(local)));
    CHECK_THROWS_WITH(
        one.accelerator.clip_grad_norm_(one.model.parameters(), 1, 2, {.error_if_nonfinite = true}),
        ContainsSubstring(std::string("clip_grad_norm_ with error_if_nonfinite was called ") + name_of(local)));
  }
}

TEST_CASE("an optimizer that saves nothing is refused where all ranks take over the state of one") {
  Accelerator accelerator(uneven());
  torch::nn::Linear net(3, 2);
  test::Forgetful forgetful(net->parameters());
  auto [model, optimizer] = accelerator.prepare(net, forgetful);
  CHECK_THROWS_WITH(accelerator.join_uneven_inputs({model}),
                    ContainsSubstring("join_uneven_inputs was called with an optimizer that saves nothing"));
  CHECK_THROWS_WITH(LocalSGD(accelerator, model),
                    ContainsSubstring("LocalSGD was called with an optimizer that saves"));
}

TEST_CASE("neither scope is entered where ranks train one model together") {
  for (const int stage : {1, 3}) {
    Accelerator accelerator({.data = {.even_batches = false}, .zero = {.stage = stage}});
    torch::nn::Linear net(3, 2);
    auto model = accelerator.prepare(net);
    CHECK_THROWS_WITH(accelerator.join_uneven_inputs({model}), ContainsSubstring("was called under ZeRO"));
    CHECK_THROWS_WITH(LocalSGD(accelerator, model), ContainsSubstring("LocalSGD was called under ZeRO"));
  }
  const State all;
  Accelerator accelerator({.data = {.even_batches = false}, .parallel = {.context = all.num_processes()}});
  torch::nn::Linear net(3, 2);
  auto model = accelerator.prepare(net);
  CHECK_THROWS_WITH(accelerator.join_uneven_inputs({model}),
                    ContainsSubstring("join_uneven_inputs was called with parallel.context"));
  CHECK_THROWS_WITH(LocalSGD(accelerator, model), ContainsSubstring("LocalSGD was called with the mesh"));
}

TEST_CASE("averages of all ranks' weights are not updated within LocalSGD") {
  Scoped one(/*local=*/true);
  Ema ema(one.accelerator, one.model);
  CHECK_THROWS_WITH(ema.update(), ContainsSubstring("Ema::update() was called within LocalSGD"));
}

TEST_CASE("after all ranks have caught an error in a step within join_uneven_inputs, training continues without it") {
  const auto expected = train_after_an_error(EarlyEnd::nowhere);
  for (const auto end : {EarlyEnd::before_backward, EarlyEnd::within_backward, EarlyEnd::before_step}) {
    INFO("end " << static_cast<int>(end));
    CHECK(are_equal(train_after_an_error(end), expected));
  }
}
