// Gradient accumulation: updates from more samples than fit into the memory of a rank at once.
//
// Put accumulate(model) first in the loop's body. Gradients of --accumulate batches then add up on their rank, and the
// last of these batches averages them over all ranks. Until then optimizer.step() and optimizer.zero_grad() do nothing.
// backward() divides each loss by the number of batches, so that the update is that of one large batch:
//
//     hortator launch -n 2 gradient_accumulation --accumulate 4 --batch-size 8
//     hortator launch -n 2 gradient_accumulation --accumulate 1 --batch-size 32     gives the same model
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "gradient_accumulation", "trains with several batches per update");
    const auto accumulate = options.number("accumulate", 4, "batches per update");
    const auto batch_size = options.number("batch-size", 8, "samples of a rank in a batch");
    const auto epochs = options.number("epochs", 6, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.gradient_accumulation_steps = accumulate, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] = accelerator.prepare(
        net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = batch_size, .shuffle = true}));

    std::int64_t batches = 0;
    std::int64_t updates = 0;
    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        const auto micro_step = accelerator.accumulate(model);
        const auto loss = at::cross_entropy_loss(model(batch.data), batch.target);
        accelerator.backward(loss);
        // Whether this batch ends a group. The last batch of a pass does, even if the group is not full.
        if (accelerator.sync_gradients()) {
          accelerator.clip_grad_norm_(model.parameters(), 1.0);
          ++updates;
        }
        optimizer.step();
        optimizer.zero_grad();
        ++batches;
      }
    }
    accelerator.print(updates, " updates from ", batches, " batches of each rank");
    toy::report(accelerator, model);
  });
}
