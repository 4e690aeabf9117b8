// Cross validation: each fold trains on all samples but its own, and is measured on these; the models of all folds
// answer the test together.
//
// hortator::subset() picks the samples of a fold. Every fold ends with free_memory(), so that its model and its
// optimizer are forgotten before the next one.
//
//     hortator launch -n 2 cross_validation --folds 5 --epochs 8
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <cstdint>
#include <hortator/datasets/subset.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>
#include <iomanip>
#include <sstream>
#include <utility>
#include <vector>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

struct Folds {
  std::int64_t samples;
  std::int64_t count;

  /// The samples that a fold trains on, and those that it is measured on.
  std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> of(std::int64_t fold) const {
    std::vector<std::int64_t> train, validation;
    for (std::int64_t i = 0; i < samples; ++i) (i / 3 % count == fold ? validation : train).push_back(i);
    return {std::move(train), std::move(validation)};
  }
};

/// Scores of all samples of a loader, in its order, and their rings. Each sample counts once. @collective
template <typename Loader>
std::pair<at::Tensor, at::Tensor> evaluate(hortator::Accelerator& accelerator, hortator::Model<toy::Net>& model,
                                           Loader& loader) {
  const at::NoGradGuard no_grad;
  model.eval();
  std::vector<at::Tensor> scores, rings;
  for (auto& batch : loader) {
    auto [some, targets] = accelerator.gather_for_metrics(at::log_softmax(model(batch.data), 1), batch.target);
    scores.push_back(some);
    rings.push_back(targets);
  }
  model.train();
  return {at::cat(scores), at::cat(rings)};
}

double percent_right(const at::Tensor& scores, const at::Tensor& rings) {
  return 100 * scores.argmax(1).eq(rings).to(at::kDouble).mean().item<double>();
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "cross_validation", "trains a model for each fold of the data");
    const Folds folds{.samples = 1536, .count = options.number("folds", 3, "parts of the data, and models")};
    const auto epochs = options.number("epochs", 8, "passes over the data for each model");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    at::Tensor sum, rings;
    double of_folds = 0;
    for (std::int64_t fold = 0; fold < folds.count; ++fold) {
      hortator::set_seed(7 + static_cast<std::uint64_t>(fold));
      toy::Net net;
      torch::optim::AdamW adamw(net->parameters(), 1e-2);
      const auto [train_samples, validation_samples] = folds.of(fold);
      auto [model, optimizer, train, validation, test] = accelerator.prepare(
          net, adamw,
          hortator::data_loader(hortator::subset(toy::Rings(folds.samples), train_samples),
                                {.batch_size = 32, .shuffle = true}),
          hortator::data_loader(hortator::subset(toy::Rings(folds.samples), validation_samples), {.batch_size = 64}),
          hortator::data_loader(toy::held_out(600), {.batch_size = 64}));
      while (train.epoch() < epochs) {
        for (auto& batch : train) {
          accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
          optimizer.step();
          optimizer.zero_grad();
        }
      }
      const auto [scores, targets] = evaluate(accelerator, model, validation);
      const auto right = percent_right(scores, targets);
      of_folds += right;
      std::ostringstream line;
      line << "fold " << fold << ": " << train_samples.size() << " samples, " << std::setprecision(4) << right
           << " % right on the other " << scores.size(0);
      accelerator.print(line.str());
      const auto [test_scores, test_rings] = evaluate(accelerator, model, test);
      sum = sum.defined() ? sum + test_scores : test_scores;
      rings = test_rings;
      accelerator.free_memory();
    }
    std::ostringstream line;
    line << std::setprecision(4) << "mean of the folds " << of_folds / static_cast<double>(folds.count)
         << "; all models together on the test, " << percent_right(sum, rings) << " % right";
    accelerator.print(line.str());
  });
}
