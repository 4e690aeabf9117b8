// Batch-size search: the largest batch that fits into the memory of all ranks.
//
// find_executable_batch_size() calls the body with smaller and smaller sizes until no rank runs out of memory. All
// ranks try the same sizes. Between two attempts everything that was prepared is freed, so the body creates its objects
// itself. --fits lets larger batches fail on the last rank only, as a rank with less free memory would:
//
//     hortator launch -n 2 batch_size_search --start 512 --fits 100
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/find_batch_size.hpp>
#include <hortator/training/random.hpp>
#include <new>

#include "../support/options.hpp"
#include "toy.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "batch_size_search", "finds the largest batch that fits into memory");
    const auto start = options.number("start", 512, "first batch size to try");
    const auto fits = options.number("fits", 0, "larger batches fail on the last rank; 0: they do not", 0);
    const auto steps = options.number("steps", 100, "steps of the training");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    const auto attempt = [&](std::int64_t batch_size) {
      accelerator.print("tries ", batch_size);
      hortator::set_seed(7);
      toy::Net net;
      torch::optim::AdamW adamw(net->parameters(), 1e-2);
      auto [model, optimizer, train] = accelerator.prepare(
          net, adamw, hortator::data_loader(toy::Rings(8192), {.batch_size = batch_size, .shuffle = true}));
      std::int64_t step = 0;
      while (step < steps) {
        for (auto& batch : train) {
          if (fits > 0 && batch_size > fits && accelerator.is_last_process()) throw std::bad_alloc();
          accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
          optimizer.step();
          optimizer.zero_grad();
          if (++step == steps) break;
        }
      }
      toy::report(accelerator, model);
    };
    // By default the next size is nine tenths of the last, as in Hugging Face Accelerate.
    const auto found = hortator::find_executable_batch_size(
        accelerator, {.start = start, .next = [](std::int64_t size) { return size * 3 / 4; }}, attempt);
    accelerator.print("batches of ", found, " fit on all ranks");
  });
}
