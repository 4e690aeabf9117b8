// Uneven inputs: ranks with different numbers of batches.
//
// By default the last batches repeat the first samples, so that all ranks have the same number of batches. With
// even_batches = false every sample is used once, and some ranks have fewer batches, or smaller ones. Within
// join_uneven_inputs() a rank that has finished takes part in the averages of the others until all have finished; all
// ranks leave with the same model.
//
//     hortator launch -n 2 uneven_inputs --samples 1000 --batch-size 64
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "uneven_inputs", "trains ranks that have different numbers of batches");
    const auto samples = options.number("samples", 1500, "samples of the data set");
    const auto batch_size = options.number("batch-size", 33, "samples of a rank in a batch");
    const auto epochs = options.number("epochs", 6, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.data = {.even_batches = false}, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] = accelerator.prepare(
        net, adamw, hortator::data_loader(toy::Rings(samples), {.batch_size = batch_size, .shuffle = true}));

    std::int64_t batches = 0;
    std::int64_t used = 0;
    {
      const auto joined = accelerator.join_uneven_inputs({model});
      while (train.epoch() < epochs) {
        for (auto& batch : train) {
          accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
          optimizer.step();
          optimizer.zero_grad();
          ++batches;
          used += batch.data.size(0);
        }
      }
    }
    const auto batches_of = accelerator.gather(at::scalar_tensor(batches));
    accelerator.print("batches: from ", batches_of.min().item<std::int64_t>(), " to ",
                      batches_of.max().item<std::int64_t>(), " on a rank");
    accelerator.print("samples: ", accelerator.reduce(at::scalar_tensor(used)).item<std::int64_t>(), " in ", epochs,
                      " epochs of ", samples);
    toy::report(accelerator, model);
  });
}
