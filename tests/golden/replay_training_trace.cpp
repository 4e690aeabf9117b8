// Whole training runs, step by step: indices, losses, norms, learning rates and parameters.
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <hortator/hortator.hpp>
#include <span>

#include "core/text/text.hpp"
#include "replay.hpp"
#include "tensors.hpp"

namespace hortator::golden {
namespace {

// y = x * a + b
struct Regression : torch::nn::Module {
  explicit Regression(at::ScalarType type)
      : a(register_parameter("a", at::zeros({}, type))), b(register_parameter("b", at::zeros({}, type))) {}
  at::Tensor forward(const at::Tensor& x) { return x * a + b; }
  at::Tensor a;
  at::Tensor b;
};

struct Mlp : torch::nn::Module {
  explicit Mlp(at::ScalarType type) {
    fc1 = register_module("fc1", torch::nn::Linear(3, 5));
    fc2 = register_module("fc2", torch::nn::Linear(5, 2));
    to(type);
  }
  at::Tensor forward(const at::Tensor& x) { return fc2(at::tanh(fc1(x))); }
  torch::nn::Linear fc1{nullptr};
  torch::nn::Linear fc2{nullptr};
};

void load(torch::nn::Module& module, const json& init, at::ScalarType type) {
  const at::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) item.value().copy_(to_tensor(init.at(item.key()), type));
}

// The samples in the fixed order of the file; records the requested indices.
struct Samples {
  at::Tensor x;
  at::Tensor y;
  std::vector<std::int64_t> order;
  std::vector<std::vector<std::int64_t>>* requested;

  std::size_t size() const { return order.size(); }
  Example<> get_batch(std::span<const std::int64_t> positions) const {
    std::vector<std::int64_t> indices;
    for (const auto position : positions) indices.push_back(order[static_cast<std::size_t>(position)]);
    requested->push_back(indices);
    const auto rows = at::tensor(indices);
    return {x.index_select(0, rows), y.index_select(0, rows)};
  }
};

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& kind, std::vector<at::Tensor> parameters,
                                                        const json& data) {
  if (kind == "sgd")
    return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(data.at("lr_sgd").get<double>()));
  return std::make_unique<torch::optim::AdamW>(
      parameters,
      torch::optim::AdamWOptions(data.at("lr_adamw").get<double>()).betas({0.9, 0.999}).eps(1e-8).weight_decay(0.01));
}

std::vector<double> flat(const torch::nn::Module& module) {
  std::vector<double> values;
  for (const auto& parameter : module.parameters()) {
    const auto row = parameter.detach().to(at::kDouble).contiguous().view({-1});
    values.insert(values.end(), row.data_ptr<double>(), row.data_ptr<double>() + row.numel());
  }
  return values;
}

// Compares with a relative tolerance; for values near zero it is relative to the largest one.
Outcome near(const std::string& name, const std::vector<double>& ours, const std::vector<double>& theirs,
             double tolerance) {
  if (ours.size() != theirs.size())
    return differs(text::concat(name, ": ", ours.size(), " numbers, Accelerate has ", theirs.size()));
  double scale = 0;
  for (const double value : theirs) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (!(std::abs(ours[i] - theirs[i]) <= tolerance * std::max(std::abs(theirs[i]), 0.1 * scale)))
      return differs(text::concat(name, "[", i, "] is ", ours[i], ", Accelerate has ", theirs[i]));
  }
  return equal();
}

struct Trace {
  std::vector<std::vector<std::int64_t>> indices;
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<double> rates;
  std::vector<std::vector<double>> parameters;
};

template <typename Net>
Trace train(const json& one, const json& data, std::int64_t warmup_steps) {
  const auto type = scalar_type(one.at("dtype"));
  const bool split = one.at("split") == 1;
  Trace trace;
  Accelerator accelerator({.gradient_accumulation_steps = one.at("accum"), .data = {.split_batches = split}});
  auto net = std::make_shared<Net>(type);
  load(*net, data.at("init"), type);
  const auto inner = make_optimizer(one_of(one, "optimizer", {"sgd", "adamw"}), net->parameters(), data);
  Schedule rates(*inner, [&](std::int64_t step) {
    return one.at("warmup") == 1 ? std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(warmup_steps))
                                 : 1.0;
  });
  const auto batch_size = data.at("batch_size").get<std::int64_t>() * (split ? accelerator.num_processes() : 1);
  Samples samples{.x = to_tensor(data.at("x"), type),
                  .y = to_tensor(data.at("y"), type),
                  .order = data.at("order"),
                  .requested = &trace.indices};
  auto [model, optimizer, loader, schedule] =
      accelerator.prepare(net, *inner, data_loader(samples, {.batch_size = batch_size, .prefetch = 0}), rates);
  while (loader.epoch() < 2) {
    for (auto& batch : loader) {
      auto micro_step = accelerator.accumulate(model);
      const auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      if (accelerator.sync_gradients() && !one.at("clip").is_null()) {
        trace.norms.push_back(
            accelerator.clip_grad_norm_(model.parameters(), one.at("clip").get<double>()).template item<double>());
      }
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      trace.losses.push_back(loss.template item<double>());
      if (!accelerator.sync_gradients()) continue;
      trace.rates.push_back(schedule.last_lr());
      trace.parameters.push_back(flat(*net));
    }
  }
  return trace;
}

Outcome judge_training_trace(const json& one, const json& file) {
  const auto rank = static_cast<std::size_t>(State().process_index());
  const auto name = one_of(one, "model", {"mlp", "regression"});
  const auto& data = file.at("data").at(name);
  const auto warmup = file.at("data").at("warmup_scheduler_steps").get<std::int64_t>();
  const auto trace = name == "mlp" ? train<Mlp>(one, data, warmup) : train<Regression>(one, data, warmup);

  const double tolerance = one.at("dtype") == "float64" ? 1e-10 : 1e-5;
  std::vector<Outcome> outcomes = {compare("indices", trace.indices, one.at("indices")[rank]),
                                   near("losses", trace.losses, one.at("losses")[rank], tolerance),
                                   near("grad_norms", trace.norms, one.at("grad_norms"), tolerance),
                                   near("lr_after_step", trace.rates, one.at("lr_after_step"), 1e-12)};
  const auto& steps = one.at("param_steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    outcomes.push_back(near(text::concat("params after step ", steps[i]),
                            trace.parameters.at(steps[i].get<std::size_t>()), one.at("params")[i], tolerance));
  }
  for (auto& outcome : outcomes) {
    if (!outcome.difference.empty()) return outcome;
  }
  return equal();
}

}  // namespace

Format training_trace() {
  return {.name = "training_trace",
          .recognises = [](const json& file) { return file.at("cases").front().contains("grad_norms"); },
          .world = [](const json& one) { return one.at("world").get<int>(); },
          .judge = judge_training_trace};
}

}  // namespace hortator::golden
