// A batch that breaks the training: its update is left out on all ranks, or the run stops on all ranks.
//
// A loss or gradient that is not finite on one rank would spoil the parameters of all. With on_nonfinite = skip all
// ranks leave the update out; what a rank saw travels with the gradients, at no extra message. A loss far above the
// mean of the others is treated alike. With rollback they also return to an earlier update: each rank has a copy of
// it in memory. This program spoils some losses on the last rank.
//
//     hortator launch -n 2 protection --protect skip
//     hortator launch -n 2 protection --protect rollback
//     hortator launch -n 2 protection --protect stop
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>
#include <limits>

#include "../support/options.hpp"
#include "toy.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "protection", "leaves bad updates out on all ranks");
    const auto protect =
        options.choice("protect", {"skip", "rollback", "stop", "proceed"}, "what to do about a bad update");
    const auto epochs = options.number("epochs", 6, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    using hortator::OnNonfinite;
    const auto action = protect == "skip"       ? OnNonfinite::skip
                        : protect == "rollback" ? OnNonfinite::rollback
                        : protect == "stop"     ? OnNonfinite::stop
                                                : OnNonfinite::proceed;
    hortator::Accelerator accelerator({.protection = {.on_nonfinite = action,
                                                      .loss_spike_factor = action == OnNonfinite::proceed ? 0.0 : 50.0,
                                                      .snapshot_every = 10},
                                       .project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}));

    std::int64_t updates = 0;
    std::int64_t skipped = 0;
    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        auto loss = at::cross_entropy_loss(model(batch.data), batch.target);
        if (++updates % 40 == 0 && accelerator.is_last_process())
          loss = loss * (updates == 40 ? std::numeric_limits<double>::quiet_NaN() : 1e4);
        accelerator.backward(loss);
        optimizer.step();
        optimizer.zero_grad();
        if (optimizer.step_was_skipped()) ++skipped;
      }
    }
    accelerator.print(skipped, " of ", updates, " updates skipped, ", accelerator.rollbacks(), " rollbacks");
    toy::report(accelerator, model);
  });
}
