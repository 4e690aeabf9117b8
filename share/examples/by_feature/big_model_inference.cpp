// Big-model inference: answer with a model that is larger than memory.
//
// init_empty_weights() constructs the model without memory. load_checkpoint_and_dispatch() keeps the parts of it in
// memory that fit (on GPUs first, then on the host) and reads the others from the checkpoint when they are used. Each
// rank answers its share of the samples.
//
//     hortator launch -n 2 big_model_inference --memory-kib 300
//     hortator launch -n 2 big_model_inference --memory-kib 0       all that is free; gives the same answers
#include <ATen/ATen.h>

#include <hortator/bigmodel/dispatch.hpp>
#include <hortator/parallel/split_between_processes.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

at::Tensor points_of(const toy::Rings& samples) {
  std::vector<at::Tensor> points;
  for (std::int64_t i = 0; i < samples.size(); ++i) points.push_back(samples.get(i).data);
  return at::stack(points);
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "big_model_inference", "answers with a model that is mostly on disk");
    const auto memory = options.number("memory-kib", 300, "KiB of host memory for the model; 0: all that is free", 0);
    const auto samples = options.number("samples", 200, "samples to answer");
    const auto width = options.number("width", 128, "width of the network");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    const auto weights = run_dir / "weights";  // in place of a model that you have downloaded
    accelerator.save_model(toy::Net(width, 8), weights);

    auto empty = hortator::init_empty_weights([&] { return toy::Net(width, 8); });
    hortator::MaxMemory max_memory;
    if (memory > 0) max_memory[hortator::DevicePlacement::cpu()] = static_cast<double>(memory) * 1024;
    auto model = hortator::load_checkpoint_and_dispatch(accelerator, empty, weights, {.max_memory = max_memory});

    const at::NoGradGuard no_grad;
    const auto mine = accelerator.split_between_processes(points_of(toy::held_out(samples)), {.apply_padding = true});
    const auto scores = accelerator.gather(model(mine)).narrow(0, 0, samples);

    const auto counters = model.counters();
    accelerator.print(counters.in_memory / 1024, " KiB in memory, ", counters.on_disk / 1024, " KiB on disk, ",
                      counters.pages_read, " pages read");
    accelerator.print("mean score ", scores.abs().mean().item<double>());
  });
}
