// A moving average of the weights, which is evaluated and kept instead of the last weights.
//
// Ema averages after each update. Within the scope of use() the model has the averages: evaluate and save_model()
// there. Training continues with the weights that are trained. Checkpoints hold the averages, and under ZeRO each rank
// has a slice of them.
//
//     hortator launch -n 2 ema --decay 0.99 --stage 2
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/ema.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "ema", "evaluates a moving average of the weights");
    const auto decay = options.real("decay", 0.99, "the weight of the average in an update");
    const auto stage = static_cast<int>(options.number("stage", 0, "what is sharded: 0, 1, 2 or 3", 0));
    const auto epochs = options.number("epochs", 8, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.zero = {.stage = stage}, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 3e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}));
    hortator::Ema ema(accelerator, model, {.decay = decay, .warm_up = hortator::EmaWarmUp::ratio});
    if (accelerator.has_checkpoint()) accelerator.load_state();

    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        optimizer.step();
        optimizer.zero_grad();
        ema.update();
      }
      accelerator.save_state();
    }
    accelerator.print("the average of ", ema.updates(), " updates:");
    const auto averaged = ema.use();
    toy::report(accelerator, model);
    accelerator.save_model(model, run_dir / "averaged");
  });
}
