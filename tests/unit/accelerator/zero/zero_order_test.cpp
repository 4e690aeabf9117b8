// Ranks that use sharded parameters in different orders all throw, and no rank waits for another.
#include <torch/optim/adamw.h>

#include <algorithm>
#include <string>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;

namespace {

enum class LayerOrder { first_then_second, second_then_first };

/// Two layers that can be applied in either order.
struct CrossingImpl : torch::nn::Module {
  CrossingImpl() {
    at::manual_seed(7);
    const auto options = torch::nn::LinearOptions(7, 7).bias(false);
    first = register_module("first", torch::nn::Linear(options));
    second = register_module("second", torch::nn::Linear(options));
  }
  at::Tensor forward(const at::Tensor& x, LayerOrder order) {
    return order == LayerOrder::first_then_second ? second(at::tanh(first(x))) : first(at::tanh(second(x)));
  }
  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
};
TORCH_MODULE(Crossing);

LayerOrder other_on_last_rank(const State& state, bool swaps) {
  return swaps && state.is_last_process() ? LayerOrder::second_then_first : LayerOrder::first_then_second;
}

/// Trains five steps. Those in `swapped_on_last` apply the layers in the other order on the last rank, those in
/// `swapped_on_all` on all ranks.
std::vector<at::Tensor> train_crossing(AcceleratorOptions options, const std::vector<int>& swapped_on_last,
                                       const std::vector<int>& swapped_on_all = {}) {
  options.ddp.bucket_cap_mb = 1e-6;  // each layer has a bucket of its own
  const auto is_in = [](const std::vector<int>& steps, int step) {
    return std::find(steps.begin(), steps.end(), step) != steps.end();
  };
  Accelerator accelerator(options);
  Crossing net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (int step = 0; step < 5; ++step) {
    const auto order = is_in(swapped_on_all, step) ? LayerOrder::second_then_first
                                                   : other_on_last_rank(accelerator, is_in(swapped_on_last, step));
    accelerator.backward(model(test::batch(accelerator, step), order).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  accelerator.wait_for_everyone();
  auto parameters = test::copies_of(*net);
  accelerator.wait_for_everyone();
  return parameters;
}

std::vector<ZeroConfig> with_paged_parameters(const test::Folder& folder) {
  return {{.stage = 3},
          {.stage = 3, .offload_optimizer = folder.path(), .offload_parameters = folder.path(), .resident_bytes = 256}};
}

}  // namespace

TEST_CASE("another order on one rank is an error on all ranks that names the parameter of each rank") {
  const State state;
  const test::Folder folder(state, "zero_order");
  if (state.num_processes() == 1) return;
  const auto last = std::to_string(state.num_processes() - 1);
  const auto others = state.num_processes() == 2 ? "rank 0" : "ranks 0-" + std::to_string(state.num_processes() - 2);
  for (const auto& zero : with_paged_parameters(folder)) {
    for (const int when : {0, 3}) {  // while the order is recorded, and afterwards
      INFO("step " << when);
      CHECK_THROWS_WITH(
          train_crossing({.zero = zero}, {when}),
          ContainsSubstring("different orders, as number 1 ") && ContainsSubstring("to second.weight on " + others) &&
              ContainsSubstring("to first.weight on rank " + last) && ContainsSubstring("ddp.find_unused_parameters"));
      state.wait_for_everyone();
    }
  }
}

TEST_CASE("a run can continue after an error about orders") {
  Accelerator accelerator({.zero = {.stage = 3}});
  Crossing net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (const bool swaps : {true, false, false}) {
    const auto loss = model(test::batch(accelerator, 0), other_on_last_rank(accelerator, swaps)).square().mean();
    if (swaps && accelerator.num_processes() > 1) {
      CHECK_THROWS_AS(accelerator.backward(loss), UsageError);
    } else {
      CHECK_NOTHROW(accelerator.backward(loss));
    }
    optimizer.step();
    optimizer.zero_grad();
  }
  accelerator.wait_for_everyone();
}

TEST_CASE("an order that changes on all ranks is recorded again") {
  const test::Folder folder(State(), "zero_order_turned");
  const auto expected = train_crossing({.zero = {.stage = 0}}, {}, {1, 2, 4});
  for (const auto& zero : with_paged_parameters(folder))
    CHECK(test::are_equal(train_crossing({.zero = zero}, {}, {1, 2, 4}), expected));
}

TEST_CASE("with find_unused_parameters orders may differ, and where nothing is paged they are not compared") {
  const test::Folder folder(State(), "zero_order_ways");
  AcceleratorOptions options = {.ddp = {.find_unused_parameters = true}};
  options.zero.stage = 0;
  const auto expected = train_crossing(options, {0, 2, 3});
  for (const auto& zero : with_paged_parameters(folder)) {
    options.zero = zero;
    CHECK(test::are_close(train_crossing(options, {0, 2, 3}), expected, 1e-6));
  }
  CHECK(test::are_close(train_crossing({.zero = {.stage = 2}}, {0, 2, 3}), expected, 1e-6));
}
