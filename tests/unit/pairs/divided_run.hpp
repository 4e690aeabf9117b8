#pragma once

#include <torch/optim/adamw.h>

#include <memory>
#include <string>
#include <vector>

#include "one_rank.hpp"
#include "unit/accelerator/tensor/tensor_course.hpp"

/// Models whose parameters are divided among two ranks, and their trainings.
namespace hortator::test {

struct DividedByTensor {
  using Net = UserTransformer;
  static constexpr const char* divided = "up0.weight";
  static std::shared_ptr<Net> make() { return user_transformer(); }
  static AcceleratorOptions on_two(AcceleratorOptions options) {
    options.parallel.tensor = 2;
    return options;
  }
  template <typename Model>
  static at::Tensor logits(Model& model, std::int64_t step, const parallel::RankGroup& data) {
    return model(TokenRows(step, data.index(), data.size()).ids);
  }
  static at::Tensor loss_of(const at::Tensor& logits, std::int64_t step, const parallel::RankGroup& data) {
    return torch::nn::functional::cross_entropy(logits.view({-1, tensor_vocabulary}),
                                                TokenRows(step, data.index(), data.size()).targets);
  }
};

struct DividedByExperts {
  using Net = ExpertNetImpl;
  static constexpr const char* divided = "first.experts.down_proj";
  static std::shared_ptr<Net> make() { return ExpertNet().ptr(); }
  static AcceleratorOptions on_two(AcceleratorOptions options) {
    options.parallel.experts = 2;
    return options;
  }
  template <typename Model>
  static at::Tensor logits(Model& model, std::int64_t step, const parallel::RankGroup& data) {
    return model(ExpertBatch(step, data.index(), data.size()).ids);
  }
  static at::Tensor loss_of(const at::Tensor& logits, std::int64_t step, const parallel::RankGroup& data) {
    return token_losses(logits, ExpertBatch(step, data.index(), data.size()).targets, at::Reduction::Mean);
  }
};

/// With a large epsilon: rounding errors of gradients that are zero must not become steps.
inline torch::optim::AdamWOptions smooth_adamw() { return torch::optim::AdamWOptions(1e-2).eps(1e-3); }

struct MakeAdamW {
  auto operator()(const std::vector<at::Tensor>& parameters) const {
    return std::make_unique<torch::optim::AdamW>(parameters, smooth_adamw());
  }
};

/// Make()(parameters) makes the optimizer.
template <typename Division, typename Make = MakeAdamW>
struct DividedRun {
  using Net = typename Division::Net;

  explicit DividedRun(const AcceleratorOptions& options) : accelerator(options) {}

  at::Tensor loss(std::int64_t step) {
    const auto& data = data_of(accelerator);
    return Division::loss_of(Division::logits(model, step, data), step, data);
  }
  double mean(const at::Tensor& loss) {
    return accelerator.reduce(loss.detach(), Reduce::mean).template item<double>();
  }
  /// Returns the mean loss before the step.
  double step(std::int64_t number) {
    const auto loss = this->loss(number);
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return mean(loss);
  }
  void steps(std::vector<double>& losses, std::int64_t first, std::int64_t count) {
    for (auto number = first; number < first + count; ++number) losses.push_back(step(number));
  }

  Accelerator accelerator;
  std::shared_ptr<Net> net = Division::make();
  std::unique_ptr<torch::optim::Optimizer> plain = Make()(net->parameters());
  Model<Net> model = accelerator.prepare(*net);
  Optimizer optimizer = accelerator.prepare(*plain);
};

}  // namespace hortator::test
