// A run that is told to stop, and goes on: stopping STEPS. Prints each step as it begins, and what became of the model
// at the end.
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <hortator/hortator.hpp>
#include <iostream>
#include <thread>

using namespace hortator;

namespace {

struct NetImpl : torch::nn::Module {
  torch::nn::Linear in = register_module("in", torch::nn::Linear(4, 8));
  torch::nn::Dropout drop = register_module("drop", torch::nn::Dropout(0.3));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(8, 1));
  at::Tensor forward(const at::Tensor& x) { return out(drop(at::tanh(in(x)))); }
};
TORCH_MODULE(Net);

struct Rows {
  std::size_t size() const { return 37; }
  Example<> get(std::int64_t i) const {
    const auto row = at::full({4}, 0.05 * static_cast<double>(i + 1));
    return {row, row.sum().view({1})};
  }
};

struct Progress {
  std::int64_t step = 0;
  double losses = 0;
  void save(StateWriter& out) const {
    out.put("step", step);
    out.put("losses", losses);
  }
  void load(const StateReader& in) {
    step = in.get<std::int64_t>("step");
    losses = in.get<double>("losses");
  }
};

void run_steps(std::int64_t steps) {
  Accelerator accelerator({.project = {.dir = "run"}});
  set_seed(7, {.device_specific = true});
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer, loader, schedule] =
      accelerator.prepare(net, adamw, data_loader(Rows(), {.batch_size = 2, .shuffle = true}),
                          cosine_warmup(adamw, {.warmup_steps = 5, .total_steps = 400}));
  Progress progress;
  accelerator.register_for_checkpointing("progress", progress);
  if (accelerator.has_checkpoint()) accelerator.load_state();
  while (progress.step < steps) {
    for (auto& batch : loader) {
      if (progress.step == steps) break;
      if (accelerator.is_main_process()) std::cout << "step " << progress.step << std::endl;
      const auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      progress.losses += loss.item<double>();
      ++progress.step;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      accelerator.save_state_every(std::chrono::milliseconds(150));
      if (accelerator.should_stop()) return;
    }
  }
  const auto losses = accelerator.reduce(at::tensor(progress.losses, at::kDouble)).item<double>();
  double weights = 0;
  for (const auto& parameter : net->parameters()) weights += parameter.detach().to(at::kDouble).sum().item<double>();
  accelerator.on_main_process([&] { std::cout << std::hexfloat << "end " << losses << ' ' << weights << std::endl; });
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [&] { run_steps(argc > 1 ? std::stoll(argv[1]) : 40); });
}
