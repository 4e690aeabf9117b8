#include <torch/nn/modules/container/sequential.h>

#include <optional>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

template <typename Use>
void check_throws_when_released(const Use& use) {
  CHECK_THROWS_WITH(use(), ContainsSubstring("was used after its Accelerator was destroyed or had freed it"));
}

}  // namespace

TEST_CASE("handles throw after their Accelerator was destroyed or freed them; the user's objects still work") {
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  for (const bool by_free : {false, true}) {
    std::optional<Accelerator> accelerator;
    accelerator.emplace();
    auto [model, optimizer, loader, schedule] = accelerator->prepare(
        net, sgd, data_loader(Rows{4}), linear_warmup(sgd, {.warmup_steps = 0, .total_steps = 10}));
    model(at::ones({1, 3}));
    by_free ? accelerator->free_memory() : accelerator.reset();
    check_throws_when_released([&, &model = model] { model(at::ones({1, 3})); });
    check_throws_when_released([&, &model = model] { model.train(); });
    check_throws_when_released([&, &optimizer = optimizer] { optimizer.step(); });
    check_throws_when_released([&, &optimizer = optimizer] { optimizer.zero_grad(); });
    check_throws_when_released([&, &loader = loader] { loader.begin(); });
    check_throws_when_released([&, &schedule = schedule] { schedule.step(); });
    // Gradients of the module itself do not use the communicator that was released.
    net->zero_grad();
    net->forward(at::full({1, 3}, State().process_index() + 1.0)).sum().backward();
    CHECK(net->out->bias.grad().item<double>() == 1);
  }
}

TEST_CASE("backward after the Accelerator was destroyed sends nothing, although handles still exist") {
  // The last layer fills the first bucket of one mebibyte: its all-reduce would start within backward.
  torch::nn::Sequential net(torch::nn::Linear(600, 600), torch::nn::Linear(600, 600));
  std::optional<Accelerator> accelerator;
  accelerator.emplace();
  const int rank = accelerator->process_index();
  auto model = accelerator->prepare(net);
  accelerator.reset();
  // On one rank only: this would hang if it needed the others.
  if (rank == 0) net->forward(at::ones({3, 600})).sum().backward();
  CHECK(net->ptr(1)->as<torch::nn::Linear>()->bias.grad().defined() == (rank == 0));
}

TEST_CASE("one Accelerator after another can prepare the same module") {
  Net net;
  for (int round = 0; round < 3; ++round) {
    Accelerator accelerator;
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    optimizer.zero_grad();
    accelerator.backward(model(at::full({1, 3}, accelerator.process_index() + 1.0)).sum());
    const auto gradient = net->hidden->weight.grad().clone();
    CHECK(at::equal(accelerator.reduce(gradient, Reduce::max), accelerator.reduce(gradient, Reduce::min)));
    optimizer.step();
  }
}

TEST_CASE("after free_memory the same objects can be prepared again") {
  Accelerator accelerator;
  Net net;
  auto first = accelerator.prepare(net);
  accelerator.free_memory();
  auto second = accelerator.prepare(net);
  accelerator.backward(second(at::ones({1, 3})).sum());
  CHECK(net->out->bias.grad().item<double>() == 1);
  accelerator.end_training();
}
