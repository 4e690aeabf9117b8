// Profiling: where the time of a step goes, as a Chrome trace of each rank.
//
// profile() records operators, their backward and collectives while the returned object lives. A schedule records only
// a few steps: the first ones, which allocate memory, are left out. Open the files in https://ui.perfetto.dev,
// chrome://tracing or TensorBoard.
//
//     hortator launch -n 2 profiling --active 3
//     ls runs/profiling/profile                       profile_0.json  profile_1.json
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>
#include <iostream>

#include "../support/options.hpp"
#include "toy.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "profiling", "writes a trace of some steps on each rank");
    const auto steps = options.number("steps", 20, "steps of the training");
    const auto skip = options.number("skip", 5, "first steps that are not recorded", 0);
    const auto active = options.number("active", 2, "steps to record");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(8192), {.batch_size = 32, .shuffle = true}));

    {
      auto profile = accelerator.profile({
          .schedule_option = hortator::ProfileSchedule{.warmup = 1, .active = active, .repeat = 1, .skip_first = skip},
          .record_shapes = true,
          .on_trace_ready =
              [](const std::filesystem::path& file) { std::cout << "wrote " << file.string() << std::endl; },
      });
      std::int64_t step = 0;
      for (auto& batch : train) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        optimizer.step();
        optimizer.zero_grad();
        profile.step();  // ends a step: the next phase of the schedule may begin
        if (++step == steps) break;
      }
    }  // all ranks have written their traces

    const auto times = accelerator.gradient_times();
    accelerator.print("averaging gradients took ", 1e3 * (times.copying + times.starting + times.waiting),
                      " ms in all");
    toy::report(accelerator, model);
  });
}
