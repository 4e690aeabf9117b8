// stopping STEPS [asynchronous]: a run that stops on a signal and resumes when started again. Prints each step as it
// begins, and saves as it goes unless FIRST is set; at the end each rank writes its data, losses, rates and parameters
// to end-RANK, exactly. Saves are asynchronous on request.
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <cstdlib>
#include <fstream>
#include <hortator/hortator.hpp>
#include <iostream>
#include <sstream>
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

/// One line per step: its loss, its learning rate and its rows.
struct Progress {
  std::int64_t step = 0;
  std::string curve;
  void save(StateWriter& out) const {
    out.put("step", step);
    out.put("curve", curve);
  }
  void load(const StateReader& in) {
    step = in.get<std::int64_t>("step");
    curve = in.get<std::string>("curve");
  }
  void note(double loss, const at::Tensor& rows, double rate) {
    std::ostringstream line;
    line << step++ << std::hexfloat << ' ' << loss << ' ' << rate << " rows";
    for (std::int64_t i = 0; i < rows.size(0); ++i) line << ' ' << rows[i][0].item<double>();
    curve += line.str() + '\n';
  }
};

void write_end(const Accelerator& accelerator, const Progress& progress, const torch::nn::Module& net,
               const torch::optim::AdamW& adamw) {
  std::ofstream out("end-" + std::to_string(accelerator.process_index()));
  out << progress.curve << std::hexfloat << "next rate " << adamw.param_groups().front().options().get_lr()
      << "\nnext number " << at::rand({1}, at::kDouble).item<double>() << '\n';
  for (const auto& item : net.named_parameters()) {
    const auto flat = item.value().detach().flatten();
    out << item.key();
    for (std::int64_t i = 0; i < flat.numel(); ++i) out << ' ' << flat[i].item<double>();
    out << '\n';
  }
}

void run_steps(std::int64_t steps, bool asynchronous) {
  const bool saves = std::getenv("FIRST") == nullptr;
  Accelerator accelerator({.project = {.dir = "run"}, .checkpoint = {.asynchronous = asynchronous}});
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
      const auto rate = adamw.param_groups().front().options().get_lr();
      const auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      progress.note(loss.item<double>(), batch.data, rate);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (saves) accelerator.save_state_every(std::chrono::milliseconds(asynchronous ? 500 : 150));
      if (accelerator.should_stop()) return;
    }
  }
  write_end(accelerator, progress, *net, adamw);
  accelerator.on_main_process([&] { std::cout << "end" << std::endl; });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return run(argc, argv, [&] { run_steps(std::stoll(arguments.at(0)), arguments.size() > 1); });
}
