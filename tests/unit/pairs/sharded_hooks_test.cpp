// Hooks of models whose parameters ZeRO shards, against stage 0.
#include <functional>
#include <vector>

#include "divided_run.hpp"

using namespace hortator;
using test::append_weights;
using test::check_near;
using test::DividedByTensor;
using test::DividedRun;

namespace {

/// Hooks that read weights and results, and replace results by what depends on both.
std::vector<double> train_with_readers(int stage) {
  DividedRun<DividedByTensor> run({.gradient_accumulation_steps = 2, .zero = {.stage = stage}});
  std::vector<double> numbers;
  run.model.add_hook({.before_forward =
                          [&](torch::nn::Module& module) {
                            for (const auto& parameter : module.parameters())
                              numbers.push_back(parameter.detach().norm().item<double>());
                          },
                      .after_forward =
                          [&](torch::nn::Module& module, std::vector<at::Tensor>& results) {
                            const auto last = module.parameters().back();
                            numbers.push_back(last.detach().sum().item<double>());
                            results.at(0) = results.at(0) * 0.5 + last.square().sum();
                          }});
  for (int step = 0; step < 6; ++step) {
    const auto micro_step = run.accelerator.accumulate(run.model);
    run.step(step);
  }
  append_weights(numbers, run.accelerator, run.model);
  return numbers;
}

using Write = std::function<void(at::Tensor& parameter)>;

/// A hook before forward writes one parameter in the third step.
void train_with_writer(int stage, const char* name, const Write& write) {
  DividedRun<DividedByTensor> run({.zero = {.stage = stage}});
  int step = 0;
  run.model.add_hook({.before_forward = [&](torch::nn::Module& module) {
    const at::NoGradGuard no_grad;
    if (step == 2) write(module.named_parameters()[name]);
  }});
  for (; step < 2; ++step) run.step(step);
  CHECK_THROWS_WITH(run.step(step), ContainsSubstring("was written past its optimizer") ||
                                        ContainsSubstring("was given other memory after prepare()"));
  run.accelerator.wait_for_everyone();
}

}  // namespace

TEST_CASE("hooks read the same parameters at every stage, and replace results by what depends on them") {
  const auto expected = train_with_readers(0);
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    check_near(train_with_readers(stage), expected);
  }
}

TEST_CASE("a hook that writes a sharded parameter is an error on all ranks in the same step") {
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    train_with_writer(stage, "up0.weight", [](at::Tensor& parameter) { parameter.clamp_(-0.05, 0.05); });
    train_with_writer(stage, "norm0.bias", [](at::Tensor& parameter) { parameter.add_(0.1); });
    train_with_writer(stage, "down1.weight", [](at::Tensor& parameter) { parameter.set_data(parameter * 0.5); });
  }
}
