// A program that trains with parameters, gradients and moments sharded and on disk, and ends in the way that its first
// argument selects.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <chrono>
#include <hortator/hortator.hpp>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

constexpr std::int64_t width = 256;

void announce_failure() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::cout << "failing at " + std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) + "\n"
            << std::flush;
}

torch::nn::Sequential make_net() {
  torch::nn::Sequential net;
  for (int i = 0; i < 8; ++i) net->push_back(torch::nn::Linear(width, width));
  return net;
}

const hortator::ZeroConfig on_disk = {
    .stage = 3, .offload_optimizer = "scratch", .offload_parameters = "scratch", .resident_bytes = 1};

/// The last rank throws in backward of step `fails_at`; the other ranks are in a collective, or will enter one.
void train(int steps, int fails_at, const hortator::ZeroConfig& zero = on_disk) {
  hortator::Accelerator accelerator({.ddp = {.bucket_cap_mb = 0.1}, .zero = zero});
  auto net = make_net();
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (int step = 0; step < steps; ++step) {
    const auto y = model(at::ones({2, width}).requires_grad_());
    if (step == fails_at && accelerator.is_last_process()) {
      y.register_hook([](const at::Tensor&) {
        announce_failure();
        throw std::runtime_error("the last rank has a problem");
      });
    }
    accelerator.backward(y.square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    constexpr int endless = std::numeric_limits<int>::max();
    const std::string_view ending = argv[1];
    if (ending == "endless") return train(endless, -1);
    // Without offloading: as on several nodes, parameters are gathered when they are used.
    ending == "zero_3" ? train(10, 3, {.stage = 3, .resident_bytes = 1}) : train(10, 3);
  });
}
