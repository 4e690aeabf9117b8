// Runs one training step of a trivial model; then rank 0 writes the time (CLOCK_MONOTONIC, in seconds) to the given
// file.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <fstream>
#include <hortator/hortator.hpp>

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    hortator::Accelerator accelerator({.cpu = true});
    torch::nn::Linear net(10, 2);
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    accelerator.backward(model(at::randn({4, 10})).square().mean());
    optimizer.step();
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    if (accelerator.is_main_process() && argc > 1) std::ofstream(argv[1]) << std::fixed << now.count() << '\n';
  });
}
