#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <hortator/nn/linear_cross_entropy.hpp>

#include "bench/bare_step.hpp"

namespace hortator::bench {
namespace {

struct LossCase {
  std::string name;
  std::int64_t tokens, width, words;
};

const std::vector<LossCase>& loss_cases() {
  static const std::vector<LossCase> all = {{"words-2000", 512, 128, 2000},
                                            {"words-32000", 4096, 512, 32000},
                                            {"words-50257", 8192, 768, 50257},
                                            {"words-128256", 4096, 2048, 128256}};
  return all;
}

/// The last layer of a language model: what is trained, and the tokens that follow.
struct LastLayer {
  at::Tensor hidden, weight, target;

  LastLayer(const LossCase& one, c10::Device device)
      : hidden(at::randn({one.tokens, one.width}, device).requires_grad_()),
        weight(at::randn({one.words, one.width}, device).mul_(0.02).requires_grad_()),
        target(at::randint(one.words, {one.tokens}, at::TensorOptions(device).dtype(at::kLong))) {}

  void backward(const at::Tensor& loss) {
    loss.backward();
    hidden.mutable_grad().reset();
    weight.mutable_grad().reset();
  }
};

Result time_loss(Accelerator& accelerator, const Plan& plan, const LossCase& one) {
  LastLayer layer(one, accelerator.device());
  const auto in_chunks = [&] {
    const auto mixed = accelerator.autocast();
    return nn::linear_cross_entropy(layer.hidden, layer.weight, layer.target);
  };
  const auto at_once = [&] {
    const auto mixed = accelerator.autocast();
    return at::cross_entropy_loss(at::linear(layer.hidden, layer.weight).to(at::kFloat), layer.target);
  };
  const Sides sides = {.ours = [&] { layer.backward(in_chunks()); },
                       .reference = [&] { layer.backward(at_once()); },
                       .line_up = [&] { line_up(accelerator); }};
  return {.name = "loss",
          .params = {{"case", one.name},
                     {"tokens", one.tokens},
                     {"width", one.width},
                     {"ranks", accelerator.num_processes()},
                     {"threads", at::get_num_threads()},
                     {"device", accelerator.device().str()},
                     {"precision", std::string(to_string(accelerator.mixed_precision()))},
                     {"steps", plan.steps}},
          .reference = "cross_entropy of linear, forward and backward",
          .timing = time_in_pairs(sides, plan)};
}

}  // namespace

std::vector<Result> loss(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  std::vector<std::string> known;
  for (const auto& one : loss_cases()) known.push_back(one.name);
  check_known("--case", selection.cases, known);
  const Selection chosen = {.cases =
                                selection.cases.empty() ? std::vector<std::string>{"words-32000"} : selection.cases};
  std::vector<Result> results;
  for (const auto& one : loss_cases()) {
    if (chosen.wants(one.name)) results.push_back(time_loss(accelerator, plan, one));
  }
  return results;
}

}  // namespace hortator::bench
