#include <array>
#include <optional>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;

namespace {

struct Scale : torch::nn::Module {
  Scale() { weight = register_parameter("weight", at::ones({4})); }
  at::Tensor forward(const at::Tensor& x) { return (weight * x).sum(); }
  at::Tensor weight;
};

}  // namespace

TEST_CASE("the Accelerator keeps modules that nothing else holds, so that no other module gets their addresses") {
  Accelerator accelerator;
  std::vector<std::weak_ptr<torch::nn::Module>> prepared;
  for (int i = 0; i < 20; ++i) {
    Net net;
    auto model = accelerator.prepare(net);
    accelerator.backward(model(at::full({1, 3}, accelerator.process_index() + 1.0)).sum());
    const auto gradient = net->out->bias.grad();
    REQUIRE(gradient.defined());
    CHECK(at::equal(accelerator.reduce(gradient, Reduce::max), accelerator.reduce(gradient, Reduce::min)));
    const auto weight = net->hidden->weight.grad();
    CHECK(at::equal(accelerator.reduce(weight, Reduce::max), accelerator.reduce(weight, Reduce::min)));
    prepared.push_back(net.ptr());
  }
  for (const auto& one : prepared) CHECK_FALSE(one.expired());
  accelerator.free_memory();
  for (const auto& one : prepared) CHECK(one.expired());
}

TEST_CASE("a handle returned from a function keeps its module") {
  Accelerator accelerator;
  const auto model = [&]() -> ModelBase { return accelerator.prepare(std::make_shared<Scale>()); }();
  CHECK(model.parameters().at(0).sum().item<double>() == 4);
}

TEST_CASE("a plain module at the address of a destroyed prepared one is an error on all ranks") {
  Accelerator accelerator;
  std::optional<Scale> plain(std::in_place);
  accelerator.prepare(*plain);
  if (accelerator.is_last_process()) plain.emplace();
  CHECK_THROWS_WITH(accelerator.prepare(*plain), ContainsSubstring("where one stood that was prepared and is no more"));
  accelerator.free_memory();
  auto model = accelerator.prepare(*plain);
  accelerator.backward(model(at::full({4}, accelerator.process_index() + 1.0)));
  CHECK(plain->weight.grad()[0].item<double>() == Approx((accelerator.num_processes() + 1) / 2.0));
}

TEST_CASE("an optimizer at the address of a destroyed prepared one is new, whichever ranks reuse that address") {
  for (const int stage : {0, 1, 2, 3}) {
    Accelerator accelerator({.zero = {.stage = stage}});
    std::array<std::optional<torch::optim::SGD>, 3> slots;
    std::optional<Optimizer> before;
    for (std::size_t round = 0; round < 3; ++round) {
      auto plain = std::make_shared<Scale>();
      for (auto& slot : slots) slot.reset();
      // The last rank uses the first slot in all rounds, rank 0 the second one twice, other ranks each slot once.
      const auto slot = accelerator.is_last_process() ? 0 : accelerator.is_main_process() && round > 0 ? 1 : round;
      auto [model, optimizer] = accelerator.prepare(plain, slots[slot].emplace(plain->parameters(), 0.1));
      if (before) CHECK(&before->core() != &optimizer.core());
      before = optimizer;
      accelerator.backward(model(at::full({4}, accelerator.process_index() + 1.0)));
      optimizer.step();
      const auto full = accelerator.summon_full_parameters(model);
      const double mean = (accelerator.num_processes() + 1) / 2.0;
      CHECK(plain->weight[0].item<double>() == Approx(1 - 0.1 * mean));
    }
  }
}

TEST_CASE("a module that one rank has prepared before and the others have not is an error on all ranks") {
  Accelerator accelerator;
  if (accelerator.num_processes() == 1) return;
  Net net;
  Net other;
  accelerator.prepare(net);
  CHECK_THROWS_WITH(accelerator.prepare(accelerator.is_last_process() ? other : net),
                    ContainsSubstring("The number of the model that prepare() was given differs between ranks"));
}

TEST_CASE("preparing an object twice returns the same handle, at any ZeRO stage") {
  for (const int stage : {0, 1, 2, 3}) {
    Accelerator accelerator({.zero = {.stage = stage}});
    Scale plain;
    Net net;
    torch::optim::AdamW adam(plain.parameters(), 0.1);
    adam.add_param_group(torch::optim::OptimizerParamGroup(net->parameters()));
    auto [first, one, trained] = accelerator.prepare(plain, net, adam);
    auto [second, two, again] = accelerator.prepare(plain, net, adam);
    CHECK(&first.core() == &second.core());
    CHECK(&one.core() == &two.core());
    CHECK(&trained.core() == &again.core());
  }
}
