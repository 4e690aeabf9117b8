// Some steps under profile(), whose ranks take turns to be late: traced STEPS LAYERS [FAILURE]. FAILURE: "throw",
// "stall", "kill" or "crash", of rank 1 after the steps.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <hortator/hortator.hpp>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

void fail(const std::string& how) {
  if (how == "throw") throw std::runtime_error("on demand");
  if (how == "kill") std::raise(SIGKILL);
  if (how == "crash") std::raise(SIGSEGV);
  if (how == "stall") std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    if (argc < 3) throw hortator::UsageError({.what = "usage: traced STEPS LAYERS [FAILURE]"});
    hortator::Accelerator accelerator;
    torch::nn::Sequential net;
    for (int layer = 0; layer < std::atoi(argv[2]); ++layer) {
      net->push_back(torch::nn::Linear(256, 256));
      net->push_back(torch::nn::Tanh());
    }
    torch::optim::SGD sgd(net->parameters(), 1e-3);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    const auto step = [&](int number) {
      if (number % accelerator.num_processes() == accelerator.process_index())
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      accelerator.backward(model(at::ones({64, 256})).pow(2).mean());
      optimizer.step();
      optimizer.zero_grad();
    };
    step(0);
    {
      auto profile = accelerator.profile({.schedule_option = hortator::ProfileSchedule{.warmup = 1, .active = 1000}});
      for (int number = 0; number < std::atoi(argv[1]); ++number) {
        step(number);
        profile.step();
      }
    }
    if (argc > 3 && accelerator.process_index() == 1) fail(argv[3]);
    step(0);
  });
}
