// A step that sleeps in place of computing, so that ranks scale on any machine: sleeping strong|weak STEPS
// MILLISECONDS.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <cstdlib>
#include <hortator/hortator.hpp>
#include <string>
#include <thread>

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    if (argc != 4) throw hortator::UsageError({.what = "usage: sleeping strong|weak STEPS MILLISECONDS"});
    hortator::Accelerator accelerator;
    const bool is_strong = std::string(argv[1]) == "strong";
    const std::chrono::duration<double, std::milli> work(std::atof(argv[3]) /
                                                         (is_strong ? accelerator.num_processes() : 1));
    torch::nn::Linear net(64, 64);
    torch::optim::SGD sgd(net->parameters(), 1e-3);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    if (accelerator.has_checkpoint()) accelerator.load_state();
    for (int step = 0; step < std::atoi(argv[2]); ++step) {
      std::this_thread::sleep_for(work);
      const auto loss = model(at::ones({4, 64})).pow(2).mean();
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      accelerator.log({{"loss", loss}});
    }
    accelerator.save_state();
  });
}
