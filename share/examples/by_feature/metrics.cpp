// Metrics over ranks: evaluate every sample exactly once, on any number of ranks.
//
// The last batches are filled up so that all ranks have the same number; gather_for_metrics() leaves these repetitions
// out. A metric that is a sum can be reduced instead, which moves less data, if every rank counts new_samples() only.
//
//     hortator launch -n 2 metrics --samples 301
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

void train(hortator::Accelerator& accelerator, hortator::Model<toy::Net>& model, hortator::Optimizer& optimizer) {
  auto loader =
      accelerator.prepare_data_loader(hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}));
  while (loader.epoch() < 4) {
    for (auto& batch : loader) {
      accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
      optimizer.step();
      optimizer.zero_grad();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "metrics", "computes metrics over all ranks, each sample once");
    const auto samples = options.number("samples", 301, "samples of the test");
    const auto batch_size = options.number("batch-size", 32, "samples of all ranks in a batch");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    // batch_size is that of all ranks together, so that any number of ranks trains and tests the same batches.
    hortator::Accelerator accelerator({.data = {.split_batches = true}, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, test] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::held_out(samples), {.batch_size = batch_size}));
    train(accelerator, model, optimizer);

    model.eval();
    const at::NoGradGuard no_grad;
    auto confusion = at::zeros({3, 3}, at::kLong);  // true ring x found ring
    for (auto& batch : test) {
      const auto found = model(batch.data).argmax(1);
      auto [all_found, all_true] = accelerator.gather_for_metrics(found, batch.target);  // any number of tensors
      confusion += at::bincount((all_true * 3 + all_found).cpu(), {}, 9).view({3, 3});
    }
    const auto right = confusion.diagonal().sum().item<std::int64_t>();
    accelerator.print(right, " of ", confusion.sum().item<std::int64_t>(), " samples right");
    const auto recall = confusion.diagonal().to(at::kDouble) / confusion.sum(1);
    accelerator.print("lowest recall of a ring: ", recall.min().item<double>());
  });
}
