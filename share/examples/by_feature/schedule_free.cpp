// An optimizer of your own: schedule-free SGD (Defazio et al., 2024), which needs no learning-rate schedule.
//
// prepare() takes every class derived from torch::optim::Optimizer: its step() sees gradients that are averaged over
// all ranks. Override save() and load() if it has a state, and checkpoints hold it. Schedule-free SGD trains at a point
// between its fast iterate z and the running mean x; x is the model to evaluate and to keep.
//
//     hortator launch -n 2 schedule_free --learning-rate 0.5
#include <ATen/ATen.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

struct ScheduleFreeOptions : torch::optim::OptimizerCloneableOptions<ScheduleFreeOptions> {
  double lr = 0.5;
  explicit ScheduleFreeOptions(double rate) : lr(rate) {}
  double get_lr() const override { return lr; }
  void set_lr(double rate) override { lr = rate; }
};

class ScheduleFreeSgd : public torch::optim::Optimizer {
 public:
  ScheduleFreeSgd(std::vector<at::Tensor> parameters, double rate)
      : Optimizer({torch::optim::OptimizerParamGroup(parameters)}, std::make_unique<ScheduleFreeOptions>(rate)),
        parameters_(std::move(parameters)) {
    for (const auto& parameter : parameters_) {
      fast_.push_back(parameter.detach().clone());
      mean_.push_back(parameter.detach().clone());
    }
  }

  at::Tensor step(LossClosure closure = nullptr) override {
    const auto loss = closure ? closure() : at::Tensor();
    const at::NoGradGuard no_grad;
    const double weight = 1.0 / static_cast<double>(++steps_);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].grad().defined()) continue;
      fast_[i].sub_(parameters_[i].grad(), defaults().get_lr());
      mean_[i].lerp_(fast_[i], weight);
      parameters_[i].copy_(fast_[i].lerp(mean_[i], momentum_));
    }
    return loss;
  }
  /// Puts the mean, which is the trained model, into the parameters; the next step() replaces it.
  void use_mean() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].copy_(mean_[i]);
  }

  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("steps", at::scalar_tensor(steps_, at::kLong));
    for (std::size_t i = 0; i < fast_.size(); ++i) archive.write("fast" + std::to_string(i), fast_[i]);
    for (std::size_t i = 0; i < mean_.size(); ++i) archive.write("mean" + std::to_string(i), mean_[i]);
  }
  void load(torch::serialize::InputArchive& archive) override {
    at::Tensor steps;
    archive.read("steps", steps);
    steps_ = steps.item<std::int64_t>();
    for (std::size_t i = 0; i < fast_.size(); ++i) archive.read("fast" + std::to_string(i), fast_[i]);
    for (std::size_t i = 0; i < mean_.size(); ++i) archive.read("mean" + std::to_string(i), mean_[i]);
  }

 private:
  static constexpr double momentum_ = 0.9;
  std::vector<at::Tensor> parameters_, fast_, mean_;
  std::int64_t steps_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "schedule_free", "trains with an optimizer of its own");
    const auto epochs = options.number("epochs", 12, "passes over the data, with those of earlier runs");
    const auto rate = options.real("learning-rate", 0.5, "learning rate");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net;
    ScheduleFreeSgd sgd(net->parameters(), rate);
    auto [model, optimizer, train] =
        accelerator.prepare(net, sgd, hortator::data_loader(toy::Rings(1536), {.batch_size = 16, .shuffle = true}));
    if (accelerator.has_checkpoint()) accelerator.load_state();

    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        optimizer.step();
        optimizer.zero_grad();
      }
      accelerator.save_state();
    }
    sgd.use_mean();
    toy::report(accelerator, model);
  });
}
