// A training step on the simulated accelerator costs at most three times the CPU's.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <chrono>

#include "sim_fixture.hpp"

using namespace hortator;

namespace {

double seconds_of_steps(c10::Device device) {
  constexpr int width = 192;
  torch::nn::Sequential net(torch::nn::Linear(width, width), torch::nn::ReLU(), torch::nn::Linear(width, width),
                            torch::nn::Tanh(), torch::nn::Linear(width, 10));
  net->to(device);
  torch::optim::AdamW optimizer(net->parameters(), 1e-3);
  const auto input = at::randn({64, width}).to(device);
  const auto target = at::randint(10, {64}).to(device);
  double best = 1e9;
  for (int step = 0; step < 12; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(input), target).backward();
    optimizer.step();
    if (!device.is_cpu()) test::sim_guard().synchronizeDevice(0);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace

TEST_CASE("a training step costs at most three times the CPU's", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    const auto cpu = seconds_of_steps(at::kCPU);
    const auto device = seconds_of_steps(sim::device());
    INFO("CPU " << cpu << " s, device " << device << " s");
    CHECK(device < 3 * cpu);
  }
}
