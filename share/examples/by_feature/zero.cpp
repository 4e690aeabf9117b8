// ZeRO: shard what every rank would hold in full. The model and the loop do not change.
//
// Stage 1 shards the optimizer's moments, stage 2 also the gradients, stage 3 also the parameters. Losses and
// parameters are those of stage 0. The stage can also come from outside, by `hortator launch --zero-stage 3` or
// hortator.yaml, if the program does not set it.
//
//     hortator launch -n 2 zero --stage 3
//     hortator launch -n 2 zero --stage 0      gives the same model
//     hortator launch --nodes 2 --int8-gathers zero --stage 3      parameters travel between nodes as 8-bit integers
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// The number of values in the parameters that this rank owns.
std::int64_t owned_by(hortator::Accelerator& accelerator, const hortator::ModelBase& model) {
  const auto state = accelerator.get_state_dict(model, {.sharded = true});
  std::int64_t numbers = 0;
  for (const auto& [name, value] : state.values()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) numbers += tensor->numel();
  }
  return numbers;
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "zero", "shards moments, gradients and parameters");
    const auto stage = static_cast<int>(options.number("stage", 3, "what is sharded: 0, 1, 2 or 3", 0));
    const auto width = options.number("width", 64, "width of the network");
    const auto epochs = options.number("epochs", 6, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.zero = {.stage = stage}, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net(width);
    std::int64_t all = 0;
    for (const auto& parameter : net->parameters()) all += parameter.numel();
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}));

    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        accelerator.clip_grad_norm_(model.parameters(), 1.0);  // the norm of all shards together
        optimizer.step();
        optimizer.zero_grad();
      }
    }
    accelerator.print("rank 0 owns ", owned_by(accelerator, model), " of ", all, " numbers");
    {
      // Outside of the model's own forward, read parameters while they are whole on every rank.
      const auto whole = accelerator.summon_full_parameters(model, {.writeback = false});
      double squares = 0;
      for (const auto& parameter : model.parameters()) squares += parameter.detach().square().sum().item<double>();
      accelerator.print("norm of the parameters ", std::sqrt(squares));
    }
    toy::report(accelerator, model);
    accelerator.save_model(model, run_dir / "weights");  // whole, in one file of safetensors
  });
}
