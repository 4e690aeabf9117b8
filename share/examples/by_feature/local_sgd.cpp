// Local SGD: less communication, for slow networks. Ranks average their parameters every few steps, instead of their
// gradients in each step.
//
// While a LocalSGD lives, gradients of the model stay on their rank and every optimizer takes its own steps. Call its
// step() after each of them. At the end of the scope all ranks have the same parameters.
//
//     hortator launch -n 2 local_sgd --local-steps 8
//     hortator launch -n 2 local_sgd --local-steps 0      plain data parallelism, for comparison
//
// With an OuterOptimizer, the mean of what the ranks have learned since the last average is the gradient of a step with
// momentum (DiLoCo), so that averages can be further apart. Between nodes it can travel in 8 bits, or as its largest
// numbers only:
//
//     hortator launch -n 2 local_sgd --local-steps 16 --outer sparse
//
// With ZeRO and several groups of ranks, a group that shares one set of shards takes steps in the place of a rank:
//
//     hortator launch -n 4 --zero-stage 2 --replicate 2 local_sgd --local-steps 16 --outer whole
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/parallel/local_sgd.hpp>
#include <hortator/parallel/outer_optimizer.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// The largest difference between a parameter of this rank and the mean over all ranks.
double spread_of(hortator::Accelerator& accelerator, const hortator::ModelBase& model) {
  double largest = 0;
  for (const auto& parameter : model.parameters()) {
    const auto mean = accelerator.reduce(parameter.detach(), hortator::Reduce::mean);
    largest = std::max(largest, (parameter.detach() - mean).abs().max().item<double>());
  }
  return accelerator.reduce(at::scalar_tensor(largest), hortator::Reduce::max).item<double>();
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "local_sgd", "averages parameters every few steps");
    const auto local_steps = options.number("local-steps", 8, "steps between two averages; 0: average gradients", 0);
    const auto wire =
        options.choice("outer", {"none", "whole", "int8", "sparse"}, "how outer steps travel; none: averages");
    const auto epochs = options.number("epochs", 6, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 16, .shuffle = true}));

    std::optional<hortator::OuterOptimizer> outer;
    if (wire != "none") {
      using enum hortator::OuterWire;
      outer.emplace(accelerator, model,
                    hortator::OuterOptimizerOptions{.wire = wire == "sparse" ? sparse
                                                            : wire == "int8" ? int8
                                                                             : whole});
    }

    double apart = 0;  // how far the ranks' parameters were from each other, at most
    {
      const bool enabled = local_steps > 0;
      hortator::LocalSGD local_sgd(
          accelerator, model,
          {.steps = enabled ? local_steps : 1, .enabled = enabled, .outer = outer ? &*outer : nullptr});
      while (train.epoch() < epochs) {
        for (auto& batch : train) {
          accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
          optimizer.step();
          if (train.end_of_dataloader()) apart = std::max(apart, spread_of(accelerator, model));
          local_sgd.step();
          optimizer.zero_grad();
        }
      }
    }
    accelerator.print("ranks were ", apart > 0 ? "apart" : "equal", " before an average, and are ",
                      spread_of(accelerator, model) == 0 ? "equal" : "apart", " at the end");
    toy::report(accelerator, model);
  });
}
