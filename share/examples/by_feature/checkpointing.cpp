// Checkpointing: save after each epoch, keep the newest, resume, and save an object of your own with the rest.
//
// save_state() writes the model, the optimizer, the loader's position, random numbers and registered objects, by all
// ranks together. Running the same command again resumes from the newest good checkpoint, on any number of ranks:
//
//     hortator launch -n 2 checkpointing --epochs 2
//     hortator launch -n 2 checkpointing --epochs 4      continues with the third epoch
//     hortator checkpoint list runs/checkpointing
//     hortator checkpoint verify runs/checkpointing/checkpoints/checkpoint_3
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// Any object with save() and load() can be part of a checkpoint.
struct BestLoss {
  double value = 1e9;
  std::int64_t epoch = 0;

  void save(hortator::StateWriter& out) const {
    out.put("value", value);
    out.put("epoch", epoch);
  }
  void load(const hortator::StateReader& in) {
    value = in.get<double>("value");
    epoch = in.get<std::int64_t>("epoch");
  }
  void update(double loss, std::int64_t at_epoch) {
    if (loss < value) *this = {.value = loss, .epoch = at_epoch};
  }
};

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "checkpointing", "saves each epoch, and resumes");
    const auto epochs = options.number("epochs", 4, "passes over the data, with those of earlier runs");
    const auto keep = options.number("keep", 2, "number of newest checkpoints to keep");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator(
        {.project = {.dir = run_dir, .automatic_checkpoint_naming = true, .total_limit = keep}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 16, .shuffle = true}));
    BestLoss best;
    accelerator.register_for_checkpointing("best", best);

    if (accelerator.has_checkpoint()) {
      accelerator.load_state();
      accelerator.print("resumes after ", train.epoch(), " epochs");
    }
    while (train.epoch() < epochs) {
      auto sum = at::zeros({}, accelerator.device());
      for (auto& batch : train) {
        const auto loss = at::cross_entropy_loss(model(batch.data), batch.target);
        accelerator.backward(loss);
        optimizer.step();
        optimizer.zero_grad();
        sum += loss.detach();
      }
      const auto mean = accelerator.reduce(sum / train.size(), hortator::Reduce::mean).item<double>();
      best.update(mean, train.epoch());
      // The note is for people: `hortator checkpoint show` prints it.
      const auto folder = accelerator.save_state({}, {.metadata = {{"loss", std::to_string(mean)}}});
      accelerator.print("epoch ", train.epoch(), ": saved ", folder.filename().string());
    }
    accelerator.print("lowest training loss in epoch ", best.epoch);
    toy::report(accelerator, model);
  });
}
