#include "accelerator/training/memory_by_owner.hpp"

#include <thread>

#include "accelerator/training/training.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

TEST_CASE("memory is counted by owner, each tensor once") {
  Accelerator accelerator({.cpu = true});
  test::Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  constexpr std::uint64_t parameters = 4 * (3 * 4 + 4 + 4 + 1);
  const auto owners = [&] { return accelerator::memory_by_owner(accelerator::Training::of(accelerator), at::kCPU); };
  CHECK(owners().parameters == parameters);
  CHECK(owners().buffers == 8);
  CHECK(owners().gradients == 0);
  CHECK(owners().optimizers == 0);
  accelerator.backward(model(at::ones({2, 3})).sum());
  // With several ranks, gradients share memory with the signals that ranks exchange, and begin at cache lines.
  CHECK(owners().gradients >= parameters);
  CHECK(owners().gradients <= 4 * 64 + parameters);
  optimizer.step();
  CHECK(owners().optimizers == 2 * parameters);
  CHECK(accelerator::memory_by_owner(accelerator::Training::of(accelerator), at::kMeta).parameters == 0);
  CHECK(accelerator.device_memory().peak_bytes == 0);
}

TEST_CASE("out of memory: only the training thread and its backward pass look at the owners") {
  Accelerator accelerator({.cpu = true});
  test::Net net;
  auto model = accelerator.prepare(net);
  const auto& training = accelerator::Training::of(accelerator);
  const auto trainer = std::this_thread::get_id();
  const auto report = [&] { return accelerator::out_of_memory_report(training, trainer, at::kCPU); };
  CHECK_THAT(report(), ContainsSubstring("Who has its memory: parameters 84 B"));
  std::string of_loader;
  std::thread([&] { of_loader = report(); }).join();
  CHECK_THAT(of_loader, ContainsSubstring("Its memory: allocated 0 B") && !ContainsSubstring("parameters"));
  std::string in_backward;
  auto weight = at::ones({2}).requires_grad_();
  weight.register_hook([&](const at::Tensor& /*gradient*/) {
    in_backward = accelerator::out_of_memory_report(training, /*training_thread=*/{}, at::kCPU);
  });
  (weight * 2).sum().backward();
  CHECK_THAT(in_backward, ContainsSubstring("Who has its memory"));
}

TEST_CASE("the description of the memory lists what has no owner") {
  const auto text = accelerator::describe(
      {.parameters = 1 << 20, .buffers = 512, .gradients = 1 << 20, .optimizers = 2 << 20, .pages = 3 << 20},
      {.allocated_bytes = (9 << 20) + 512, .peak_bytes = 10 << 20, .reserved_bytes = (11 << 20) + 512});
  CHECK_THAT(text, ContainsSubstring(
                       "parameters 1.0 MiB, buffers 512 B, gradients 1.0 MiB, optimizers 2.0 MiB, pages 3.0 MiB"));
  CHECK_THAT(text, ContainsSubstring("activations and others 2.0 MiB; kept for the next tensors 2.0 MiB"));
  CHECK_THAT(text, ContainsSubstring("the most at once was 10.0 MiB"));
}

TEST_CASE("trackers get the current and the peak memory in GiB") {
  const auto values = accelerator::device_memory_values(
      {.allocated_bytes = 3ULL << 30U, .peak_bytes = 5ULL << 30U, .reserved_bytes = 6ULL << 30U});
  CHECK(values == std::vector<std::pair<std::string, double>>{{"device_memory_gib", 3}, {"device_memory_peak_gib", 5}});
}
