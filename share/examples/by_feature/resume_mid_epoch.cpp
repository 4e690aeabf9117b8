// Resuming within an epoch: a job that is stopped anywhere continues with the very next batch.
//
// A checkpoint has the loader's position. After load_state() the next loop starts behind the last batch that was
// trained, in the same shuffled order, also on another number of ranks: every sample of the epoch is used exactly once.
// should_stop() becomes true when the job's time is nearly over, after the run has been saved; --stop-after does the
// same here after a fixed number of batches.
//
//     hortator launch -n 2 resume_mid_epoch --stop-after 10
//     hortator launch -n 2 resume_mid_epoch                    gives the model of a run that was never stopped
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// The samples that all ranks have trained on so far, over all runs.
struct SampleCount {
  std::int64_t samples = 0;
  void save(hortator::StateWriter& out) const { out.put("samples", samples); }
  void load(const hortator::StateReader& in) { samples = in.get<std::int64_t>("samples"); }
};

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "resume_mid_epoch", "stops within an epoch, and resumes there");
    const auto epochs = options.number("epochs", 2, "passes over the data");
    const auto stop_after = options.number("stop-after", 0, "batches of this run; 0: all", 0);
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}));
    SampleCount seen;
    accelerator.register_for_checkpointing("seen", seen);

    if (accelerator.has_checkpoint()) {
      accelerator.load_state();
      accelerator.print("resumes in epoch ", train.epoch(), " behind batch ", train.first_step(), " of ", train.size());
    }
    std::int64_t batches = 0;
    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        optimizer.step();
        optimizer.zero_grad();
        seen.samples += train.new_samples();

        if (accelerator.should_stop()) return;  // already saved; the program ends with code 75: to be continued
        if (++batches == stop_after) {
          accelerator.save_state();
          accelerator.print("stopped after ", batches, " batches");
          return;
        }
      }
    }
    accelerator.print(seen.samples, " samples in ", train.epoch(), " epochs");
    toy::report(accelerator, model);
  });
}
