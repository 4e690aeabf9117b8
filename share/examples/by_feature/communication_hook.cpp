// Communication hook: average gradients by a function of your own.
//
// The function gets each bucket of gradients and must leave the same values in it on all ranks. This one sends a
// quarter of the bytes: whole numbers of 8 bits and one scale. What rounding takes is added to the next step.
//
//     hortator launch -n 2 communication_hook
//     hortator launch -n 2 communication_hook --plain
//
// Large matrices can also travel as products of two thin ones, for networks much slower than a cluster's (PowerSGD):
//
//     hortator launch -n 2 communication_hook --power-sgd 2
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>
#include <map>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// Averages buckets in 8 bits, and keeps the rounding errors.
class EightBits {
 public:
  void operator()(hortator::BucketExchange& bucket) {
    auto& error = errors_[bucket.index];
    const auto exact = error.defined() ? bucket.gradients + error : bucket.gradients.clone();
    const auto scale = at::clamp_min(exact.abs().max() / 127, 1e-30);
    const auto rounded = at::round(exact / scale).to(at::kChar);
    error = exact - rounded.to(at::kFloat) * scale;
    const auto all = bucket.gather(rounded);  // of all ranks, as rows
    const auto scales = bucket.gather(scale.reshape({1}));
    bucket.gradients.copy_((all.to(at::kFloat) * scales).mean(0));
  }

 private:
  std::map<std::int64_t, at::Tensor> errors_;
};

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "communication_hook", "averages gradients in 8 bits");
    const bool plain = options.flag("plain", "average in 32 bits, for comparison");
    const auto low_rank = options.number("power-sgd", 0, "send matrices as factors of this number of columns", 0);
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::AcceleratorOptions settings{.project = {.dir = run_dir}};
    if (low_rank > 0) {
      settings.ddp.comm_hook = hortator::DDPCommunicationHookType::power_sgd;
      settings.ddp.power_sgd = {.rank = low_rank, .start_step = 10};  // ten steps with whole gradients first
    } else if (!plain) {
      settings.ddp.bucket_hook = EightBits();
    }
    hortator::Accelerator accelerator(settings);
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, loader] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}));
    while (loader.epoch() < 6) {
      for (auto& batch : loader) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        optimizer.step();
        optimizer.zero_grad();
      }
    }
    toy::report(accelerator, model);
  });
}
