#include "simulation/settings/optimizer.hpp"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <functional>
#include <hortator/training/optimizers.hpp>
#include <map>
#include <string>

#include "simulation/sections/choice_of.hpp"

namespace hortator::simulation {
namespace {

using Parameters = std::vector<at::Tensor>;
using MadeOptimizer = std::unique_ptr<torch::optim::Optimizer>;

double learning_rate(const Section& section, double absent) {
  const double rate = section.number("lr", absent);
  if (!(rate >= 0)) throw section.error("lr", "expected a learning rate from 0");
  return rate;
}

MadeOptimizer make_sgd(const Section& section, const Parameters& parameters) {
  return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(learning_rate(section, 1e-3))
                                                             .momentum(section.number("momentum", 0))
                                                             .dampening(section.number("dampening", 0))
                                                             .weight_decay(section.number("weight_decay", 0))
                                                             .nesterov(section.flag("nesterov", false)));
}

Betas betas_of(const Section& section, Betas absent) {
  const auto betas = section.numbers("betas", {absent[0], absent[1]});
  const bool are_weights = std::ranges::all_of(betas, [](double beta) { return beta >= 0 && beta < 1; });
  if (betas.size() != 2 || !are_weights)
    throw section.error("betas", "expected two numbers from 0 and below 1, such as [0.9, 0.999]");
  return {betas[0], betas[1]};
}

template <typename Optimizer, typename Options>
MadeOptimizer make_adam(const Section& section, const Parameters& parameters, double decay) {
  const auto [beta1, beta2] = betas_of(section, {0.9, 0.999});
  return std::make_unique<Optimizer>(parameters, Options(learning_rate(section, 1e-3))
                                                     .betas({beta1, beta2})
                                                     .eps(section.number("eps", 1e-8))
                                                     .weight_decay(section.number("weight_decay", decay))
                                                     .amsgrad(section.flag("amsgrad", false)));
}

MadeOptimizer make_rmsprop(const Section& section, const Parameters& parameters) {
  return std::make_unique<torch::optim::RMSprop>(parameters, torch::optim::RMSpropOptions(learning_rate(section, 1e-2))
                                                                 .alpha(section.number("alpha", 0.99))
                                                                 .eps(section.number("eps", 1e-8))
                                                                 .weight_decay(section.number("weight_decay", 0))
                                                                 .momentum(section.number("momentum", 0))
                                                                 .centered(section.flag("centered", false)));
}

MadeOptimizer make_adagrad(const Section& section, const Parameters& parameters) {
  return std::make_unique<torch::optim::Adagrad>(parameters, torch::optim::AdagradOptions(learning_rate(section, 1e-2))
                                                                 .lr_decay(section.number("lr_decay", 0))
                                                                 .eps(section.number("eps", 1e-10))
                                                                 .weight_decay(section.number("weight_decay", 0)));
}

MadeOptimizer make_lion(const Section& section, const Parameters& parameters) {
  LionOptions options;
  options.lr = learning_rate(section, options.lr);
  options.betas = betas_of(section, options.betas);
  options.weight_decay = section.number("weight_decay", options.weight_decay);
  return std::make_unique<Lion>(parameters, options);
}

/// Reads what all relatives of Adam have.
template <typename Options>
Options moments_options(const Section& section) {
  Options options;
  options.lr = learning_rate(section, options.lr);
  options.betas = betas_of(section, options.betas);
  options.eps = section.number("eps", options.eps);
  options.weight_decay = section.number("weight_decay", options.weight_decay);
  return options;
}
template <typename Options>
Options adam_like(const Section& section) {
  auto options = moments_options<Options>(section);
  options.decoupled_weight_decay = section.flag("decoupled_weight_decay", options.decoupled_weight_decay);
  return options;
}

MadeOptimizer make_nadam(const Section& section, const Parameters& parameters) {
  auto options = adam_like<NAdamOptions>(section);
  options.momentum_decay = section.number("momentum_decay", options.momentum_decay);
  return std::make_unique<NAdam>(parameters, options);
}

MadeOptimizer make_radam(const Section& section, const Parameters& parameters) {
  return std::make_unique<RAdam>(parameters, adam_like<RAdamOptions>(section));
}

MadeOptimizer make_lamb(const Section& section, const Parameters& parameters) {
  return std::make_unique<Lamb>(parameters, moments_options<LambOptions>(section));
}

MadeOptimizer make_adamw_8bit(const Section& section, const Parameters& parameters) {
  return std::make_unique<AdamW8bit>(parameters, moments_options<AdamW8bitOptions>(section));
}

MadeOptimizer make_adafactor(const Section& section, const Parameters& parameters) {
  AdafactorOptions options;
  options.lr = learning_rate(section, options.lr);
  options.beta2_decay = section.number("beta2_decay", options.beta2_decay);
  options.d = section.number("d", options.d);
  options.weight_decay = section.number("weight_decay", options.weight_decay);
  return std::make_unique<Adafactor>(parameters, options);
}

const std::map<std::string, std::function<MadeOptimizer(const Section&, const Parameters&)>> optimizers = {
    {"sgd", make_sgd},
    {"adam",
     [](const auto& s, const auto& p) { return make_adam<torch::optim::Adam, torch::optim::AdamOptions>(s, p, 0); }},
    {"adamw", [](const auto& s,
                 const auto& p) { return make_adam<torch::optim::AdamW, torch::optim::AdamWOptions>(s, p, 1e-2); }},
    {"rmsprop", make_rmsprop},
    {"adagrad", make_adagrad},
    {"adamw_8bit", make_adamw_8bit},
    {"adafactor", make_adafactor},
    {"lamb", make_lamb},
    {"lion", make_lion},
    {"nadam", make_nadam},
    {"radam", make_radam}};

}  // namespace

MadeOptimizer make_optimizer(const Section& model, const Parameters& parameters) {
  if (!model.has("optimizer")) return nullptr;
  const auto [type, section] = model.typed("optimizer");
  const auto& make = choice_of(model, "optimizer", type, optimizers);
  if (parameters.empty()) throw model.error("optimizer", "the model has no parameters that learn");
  auto optimizer = make(section, parameters);
  section.finish();
  return optimizer;
}

}  // namespace hortator::simulation
