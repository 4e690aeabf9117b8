// The loss scale at each step, for patterns of overflow.
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <ATen/ops/ones.h>

#include <hortator/hortator.hpp>
#include <limits>

#include "core/text/text.hpp"
#include "replay.hpp"

namespace hortator::golden {
namespace {

struct Weights : torch::nn::Module {
  Weights() { w = register_parameter("w", at::ones({3})); }
  at::Tensor forward() { return w; }
  at::Tensor w;
};

// "inf" is written as a string.
float number(const json& value) { return value.is_string() ? std::stof(value.get<std::string>()) : value.get<float>(); }

GradScalerOptions scaler_options_of(const json& one) {
  return {.init_scale = number(one.at("init_scale")),
          .growth_factor = one.at("growth_factor").get<double>(),
          .backoff_factor = one.at("backoff_factor").get<double>(),
          .growth_interval = one.at("growth_interval").get<std::int64_t>(),
          .enabled = one.at("enabled").get<int>() != 0};
}

// Changes one element of the gradient on one of the ranks. 0: unchanged, 1: infinite, 2: not a number.
void spoil(const at::Tensor& gradient, int how) {
  if (how == 1) gradient[1] = std::numeric_limits<float>::infinity();
  if (how == 2) gradient[1] = std::numeric_limits<float>::quiet_NaN();
}

Outcome judge_grad_scaler(const json& one, const json&) {
  Accelerator accelerator({.mixed_precision = Precision::fp16, .grad_scaler = scaler_options_of(one), .cpu = true});
  auto net = std::make_shared<Weights>();
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto& pattern = one.at("pattern");
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    accelerator.backward(model().sum() * 1e-3);
    if (accelerator.process_index() == static_cast<int>(i) % accelerator.num_processes()) {
      spoil(net->w.grad(), pattern[i].get<int>());
    }
    if (one.at("unscale_first").get<int>() != 0) accelerator.unscale_gradients(optimizer);
    optimizer.step();
    optimizer.zero_grad();
    const auto& expected = one.at("seq").at(i);
    const auto [scale, tracker] = accelerator.loss_scale();
    const bool skipped = optimizer.step_was_skipped();
    if (scale == number(expected.at(0)) && tracker == expected.at(1).get<std::int64_t>() &&
        skipped == (expected.at(2).get<int>() != 0)) {
      continue;
    }
    return differs(text::concat("step ", i, ": scale ", scale, ", tracker ", tracker, ", skipped ", skipped,
                                "; Accelerate has ", expected.dump()));
  }
  return equal();
}

}  // namespace

Format grad_scaler() {
  return {.name = "grad_scaler",
          .recognises = [](const json& file) { return file.at("cases").front().contains("growth_interval"); },
          .world = [](const json&) { return 1; },
          .judge = judge_grad_scaler};
}

}  // namespace hortator::golden
