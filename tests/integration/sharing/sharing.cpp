// sharing STEPS: trains until STEPS, with 20 ms a step, in the project folder `run`; saves every 10 steps and at the
// end, and resumes. Prints each step.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <hortator/hortator.hpp>
#include <iostream>
#include <thread>

using namespace hortator;

namespace {

struct Count {
  std::int64_t step = 0;
  void save(StateWriter& out) const { out.put("step", step); }
  void load(const StateReader& in) { step = in.get<std::int64_t>("step"); }
};

void train(std::int64_t steps) {
  Accelerator accelerator({.project = {.dir = "run"}});
  torch::nn::Linear net(2, 1);
  torch::optim::SGD sgd(net->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  Count count;
  accelerator.register_for_checkpointing("count", count);
  if (accelerator.has_checkpoint()) accelerator.load_state();
  while (count.step < steps) {
    accelerator.backward(model(at::ones({1, 2})).sum());
    optimizer.step();
    optimizer.zero_grad();
    ++count.step;
    accelerator.on_main_process([&] { std::cout << "step " << count.step << std::endl; });
    if (count.step % 10 == 0 || count.step == steps) accelerator.save_state();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [&] { train(std::stoll(argv[1])); });
}
