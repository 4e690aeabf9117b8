// A training step on the simulated accelerator costs at most three times the CPU's.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "sim_fixture.hpp"

using namespace hortator;

namespace {

/// A small net on one device, and what its fastest step has cost.
class Steps {
 public:
  explicit Steps(c10::Device device) : device_(device) { net_->to(device); }

  /// Processor time of all threads, because other programs may use the cores as well.
  void time_one() {
    const auto begin = std::clock();
    optimizer_.zero_grad();
    torch::nn::functional::cross_entropy(net_->forward(input_), target_).backward();
    optimizer_.step();
    if (!device_.is_cpu()) test::sim_guard().synchronizeDevice(0);
    best_ = std::min(best_, std::clock() - begin);
  }

  std::clock_t best() const { return best_; }

 private:
  static constexpr int width = 192;
  c10::Device device_;
  torch::nn::Sequential net_{torch::nn::Linear(width, width), torch::nn::ReLU(), torch::nn::Linear(width, width),
                             torch::nn::Tanh(), torch::nn::Linear(width, 10)};
  at::Tensor input_ = at::randn({64, width}).to(device_);
  at::Tensor target_ = at::randint(10, {64}).to(device_);
  torch::optim::AdamW optimizer_{net_->parameters(), 1e-3};
  std::clock_t best_ = std::numeric_limits<std::clock_t>::max();
};

}  // namespace

TEST_CASE("a training step costs at most three times the CPU's", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    Steps cpu(at::kCPU);
    Steps device(sim::device());
    for (int step = 0; step < 20; ++step) {  // in turn, because a machine's speed changes
      cpu.time_one();
      device.time_one();
    }
    INFO("CPU " << cpu.best() << " us, device " << device.best() << " us");
    CHECK(device.best() < 3 * cpu.best());
  }
}
