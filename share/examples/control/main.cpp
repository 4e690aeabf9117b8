// Your own objects in checkpoints, early stopping at the same step on all ranks, work on one rank only, collectives.
//
//     hortator launch -n 2 control --tolerance 1e-3      run it again: it resumes, and has nothing left to do
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <fstream>
#include <hortator/hortator.hpp>
#include <iostream>

#include "../support/options.hpp"

namespace {

struct MovingAverage {  // any object with save() and load() can be part of a checkpoint
  double value = 1;
  void save(hortator::StateWriter& out) const { out.put("value", value); }
  void load(const hortator::StateReader& in) { value = in.get<double>("value"); }
};

/// Writes the numbers if the file does not exist yet, then reads them.
std::vector<double> prepare_once(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) {
    std::ofstream out(file);
    for (int i = 0; i < 64; ++i) out << i / 64.0 << '\n';
  }
  std::vector<double> numbers;
  std::ifstream in(file);
  for (double number = 0; in >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "control", "stops all ranks at the same step, and saves an object of its own");
    const auto tolerance = options.real("tolerance", 1e-3, "mean loss at which the training ends");
    const auto steps = options.number("steps", 1000, "maximum number of steps");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    MovingAverage average;
    accelerator.register_for_checkpointing("average", average);

    auto numbers = accelerator.main_process_first([] { return prepare_once("numbers.txt"); });  // the other ranks wait
    const auto x = torch::tensor(numbers).to(torch::kFloat).unsqueeze(1);

    torch::nn::Linear net(1, 1);
    torch::optim::SGD sgd(net->parameters(), 0.5);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    if (accelerator.has_checkpoint()) accelerator.load_state();

    std::int64_t step = 0;
    for (; step < steps; ++step) {
      const auto loss = torch::mse_loss(model(x), 3 * x + 1);
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      average.value =
          0.9 * average.value + 0.1 * accelerator.reduce(loss.detach(), hortator::Reduce::mean).item<double>();
      if (average.value < tolerance) accelerator.set_trigger();  // any rank may set it;
      if (accelerator.check_trigger()) break;                    // all ranks stop at the same step
    }

    auto sizes = accelerator.gather(torch::tensor({static_cast<std::int64_t>(numbers.size())}));
    accelerator.on_main_process([&] { std::cout << "stopped at step " << step << ", sizes " << sizes << '\n'; });
    accelerator.wait_for_everyone();
    accelerator.save_state();
  });
}
