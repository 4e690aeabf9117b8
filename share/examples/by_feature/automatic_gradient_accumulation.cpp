// Automatic gradient accumulation: the same training on machines with more or less memory.
//
// --total samples of a rank make one update. find_executable_batch_size() halves the batch until it fits into the
// memory of all ranks, and the batches that are then missing for an update are accumulated. The result is the same for
// every size. To see that on a machine with enough memory, let larger batches fail:
//
//     hortator launch -n 2 automatic_gradient_accumulation --fits 20
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/find_batch_size.hpp>
#include <hortator/training/random.hpp>
#include <new>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

struct Settings {
  std::int64_t total, fits, epochs;
};

/// One whole training. It creates and prepares everything itself, because a failed attempt frees what was prepared.
void train_with(hortator::Accelerator& accelerator, const Settings& settings, std::int64_t batch_size) {
  accelerator.set_gradient_accumulation_steps(settings.total / batch_size);
  hortator::set_seed(7);
  toy::Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer, train] = accelerator.prepare(
      net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = batch_size, .shuffle = true}));
  while (train.epoch() < settings.epochs) {
    for (auto& batch : train) {
      if (settings.fits > 0 && batch.data.size(0) > settings.fits) throw std::bad_alloc();
      const auto micro_step = accelerator.accumulate(model);
      accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  accelerator.print("batches of ", batch_size, ", ", settings.total / batch_size, " for each update");
  toy::report(accelerator, model);
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "automatic_gradient_accumulation",
                             "keeps the samples of an update in any memory");
    const Settings settings{
        .total = options.number("total", 64, "samples of a rank in an update: a power of two"),
        .fits = options.number("fits", 0, "larger batches fail as if memory were full; 0: they do not", 0),
        .epochs = options.number("epochs", 6, "passes over the data"),
    };
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    const auto halve = [](std::int64_t batch_size) { return batch_size / 2; };
    hortator::find_executable_batch_size(
        accelerator, {.start = settings.total, .next = halve},
        [&](std::int64_t batch_size) { train_with(accelerator, settings, batch_size); });
  });
}
