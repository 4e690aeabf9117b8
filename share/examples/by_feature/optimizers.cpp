// Optimizers that LibTorch does not have, and one of your own, sharded by ZeRO.
//
// Lion, NAdam, RAdam, LAMB, Adafactor, Muon, AdamW with moments of a byte and schedule-free AdamW are prepared as
// torch::optim's own. Your optimizer is sharded if it says that it steps element by element: derive it from
// NamedOptimizer, which gives its options and moments names for checkpoints, and from ElementwiseOptimizer. Then every
// stage trains as stage 0 does. One that looks at norms or rows derives from SlicedOptimizer.
//
//     hortator launch -n 2 optimizers --optimizer lion --stage 2
//     hortator launch -n 2 optimizers --optimizer signum --stage 3
#include <ATen/ATen.h>

#include <hortator/run.hpp>
#include <hortator/training/optimizers.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// The sign of a mean gradient.
class Signum final : public hortator::NamedOptimizer, public hortator::ElementwiseOptimizer {
 public:
  Signum(std::vector<at::Tensor> parameters, double lr)
      : NamedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))},
                       hortator::NamedOptions({{"lr", lr}, {"beta", 0.9}}, {"mean"})) {}

 private:
  void update(at::Tensor& parameter, const at::Tensor& gradient, hortator::MomentState& state,
              const hortator::NamedOptions& options) override {
    auto& mean = state.moments["mean"].lerp_(gradient, 1 - options.get("beta"));
    parameter.sub_(mean.sign(), options.get_lr());
  }
};

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name, std::vector<at::Tensor> parameters) {
  if (name == "lion") return std::make_unique<hortator::Lion>(parameters, hortator::LionOptions{.lr = 3e-3});
  if (name == "nadam") return std::make_unique<hortator::NAdam>(parameters, hortator::NAdamOptions{.lr = 1e-2});
  if (name == "radam") return std::make_unique<hortator::RAdam>(parameters, hortator::RAdamOptions{.lr = 1e-2});
  if (name == "lamb") return std::make_unique<hortator::Lamb>(parameters, hortator::LambOptions{.lr = 2e-2});
  if (name == "adafactor")
    return std::make_unique<hortator::Adafactor>(parameters, hortator::AdafactorOptions{.lr = 5e-2});
  if (name == "adamw-8bit")
    return std::make_unique<hortator::AdamW8bit>(parameters, hortator::AdamW8bitOptions{.lr = 1e-2});
  if (name == "signum") return std::make_unique<Signum>(parameters, 3e-3);
  return std::make_unique<hortator::ScheduleFreeAdamW>(parameters, hortator::ScheduleFreeAdamWOptions{.lr = 1e-2});
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "optimizers", "trains with an optimizer that LibTorch does not have");
    const auto name = options.choice(
        "optimizer", {"lion", "nadam", "radam", "lamb", "adafactor", "adamw-8bit", "schedule-free", "signum"},
        "what steps");
    const auto stage = static_cast<int>(options.number("stage", 2, "what is sharded: 0, 1, 2 or 3", 0));
    const auto epochs = options.number("epochs", 8, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.zero = {.stage = stage}, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    const auto plain = make_optimizer(name, net->parameters());
    auto [model, optimizer, train] =
        accelerator.prepare(net, *plain, hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}));
    if (accelerator.has_checkpoint()) accelerator.load_state();

    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        optimizer.step();
        optimizer.zero_grad();
      }
      accelerator.save_state();
    }
    if (name == "schedule-free") optimizer.eval();  // it trains at other weights than those to evaluate
    toy::report(accelerator, model);
  });
}
