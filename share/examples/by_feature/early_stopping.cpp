// Early stopping: end when the validation loss no longer falls, on all ranks after the same epoch.
//
// A rank that left the loop alone would leave the others waiting in their next collective. Any rank may call
// set_trigger(); check_trigger() then returns true on all ranks in the same call. Here the main process decides.
//
//     hortator launch -n 2 early_stopping --patience 3 --min-delta 0.002
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// Counts the epochs since the loss has fallen by at least `min_delta`.
class Patience {
 public:
  Patience(std::int64_t epochs, double min_delta) : epochs_(epochs), min_delta_(min_delta) {}

  bool is_over(double loss) {
    if (loss < best_ - min_delta_) {
      best_ = loss;
      waited_ = 0;
    } else {
      ++waited_;
    }
    return waited_ >= epochs_;
  }

 private:
  std::int64_t epochs_;
  double min_delta_;
  double best_ = 1e9;
  std::int64_t waited_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "early_stopping", "ends when the validation loss no longer falls");
    const auto epochs = options.number("epochs", 60, "maximum number of passes over the data");
    Patience patience(options.number("patience", 3, "epochs without improvement after which training ends"),
                      options.real("min-delta", 2e-3, "smallest decrease that counts as an improvement"));
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train, validation] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}),
                            hortator::data_loader(toy::held_out(256), {.batch_size = 64}));

    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        optimizer.step();
        optimizer.zero_grad();
      }
      double sum = 0;
      for (auto& batch : validation) {
        const at::NoGradGuard no_grad;
        sum += at::cross_entropy_loss(model(batch.data), batch.target).item<double>();
      }
      const auto loss =
          accelerator.reduce(at::scalar_tensor(sum / static_cast<double>(validation.size())), hortator::Reduce::mean)
              .item<double>();
      if (accelerator.is_main_process() && patience.is_over(loss)) accelerator.set_trigger();
      if (accelerator.check_trigger()) break;
    }
    const auto ended = accelerator.gather(at::scalar_tensor(train.epoch()));
    accelerator.print("stopped after epoch ", train.epoch(), " of ", epochs, ", ",
                      ended.eq(train.epoch()).all().item<bool>() ? "on all ranks" : "not on all ranks");
    toy::report(accelerator, model);
  });
}
