#include "simulation/settings/optimizer.hpp"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <hortator/training/schedules.hpp>
#include <map>
#include <string>

#include "core/text/text.hpp"

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

std::tuple<double, double> betas_of(const Section& section) {
  const auto betas = section.numbers("betas", {0.9, 0.999});
  if (betas.size() != 2) throw section.error("betas", "expected two numbers: [0.9, 0.999]");
  return {betas[0], betas[1]};
}

template <typename Optimizer, typename Options>
MadeOptimizer make_adam(const Section& section, const Parameters& parameters, double decay) {
  return std::make_unique<Optimizer>(parameters, Options(learning_rate(section, 1e-3))
                                                     .betas(betas_of(section))
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

const std::map<std::string, std::function<MadeOptimizer(const Section&, const Parameters&)>> optimizers = {
    {"sgd", make_sgd},
    {"adam",
     [](const auto& s, const auto& p) { return make_adam<torch::optim::Adam, torch::optim::AdamOptions>(s, p, 0); }},
    {"adamw", [](const auto& s,
                 const auto& p) { return make_adam<torch::optim::AdamW, torch::optim::AdamWOptions>(s, p, 1e-2); }},
    {"rmsprop", make_rmsprop},
    {"adagrad", make_adagrad}};

using MakeSchedule = std::function<Schedule(const Section&, torch::optim::Optimizer&)>;

const std::map<std::string, MakeSchedule> schedules = {
    {"constant_warmup",
     [](const auto& s, auto& optimizer) {
       return constant_warmup(optimizer, {.warmup_steps = s.integer("warmup_steps", 0)});
     }},
    {"linear_warmup",
     [](const auto& s, auto& optimizer) {
       return linear_warmup(
           optimizer, {.warmup_steps = s.integer("warmup_steps", 0, 0), .total_steps = s.integer("total_steps", 1)});
     }},
    {"cosine_warmup",
     [](const auto& s, auto& optimizer) {
       return cosine_warmup(optimizer, {.warmup_steps = s.integer("warmup_steps", 0, 0),
                                        .total_steps = s.integer("total_steps", 1),
                                        .num_cycles = s.number("num_cycles", 0.5),
                                        .floor = s.number("floor", 0)});
     }},
    {"one_cycle",
     [](const auto& s, auto& optimizer) {
       return one_cycle(optimizer, {.max_lr = s.number("max_lr"),
                                    .total_steps = s.integer("total_steps", 1),
                                    .pct_start = s.number("pct_start", 0.3)});
     }},
    {"step",
     [](const auto& s, auto& optimizer) {
       return step_lr(optimizer, {.step_size = s.integer("step_size", 1), .gamma = s.number("gamma", 0.1)});
     }},
    {"multi_step",
     [](const auto& s, auto& optimizer) {
       return multi_step_lr(optimizer, {.milestones = s.integers("milestones", 0), .gamma = s.number("gamma", 0.1)});
     }},
    {"exponential",
     [](const auto& s, auto& optimizer) { return exponential_lr(optimizer, {.gamma = s.number("gamma", 0.9)}); }},
    {"cosine_annealing", [](const auto& s, auto& optimizer) {
       return cosine_annealing(optimizer,
                               {.half_period = s.integer("half_period", 1), .eta_min = s.number("eta_min", 0)});
     }}};

/// The entry of `makers` for the type that `key` names. Throws UsageError with the nearest type.
template <typename Makers>
const auto& maker_of(const Section& model, const char* key, const std::string& type, const Makers& makers) {
  if (const auto found = makers.find(type); found != makers.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, maker] : makers) known.push_back(name);
  throw model.error(key, text::concat("unknown type ", text::quote(type)), text::suggestion(type, known));
}

}  // namespace

MadeOptimizer make_optimizer(const Section& model, const Parameters& parameters) {
  if (!model.has("optimizer")) return nullptr;
  const auto [type, section] = model.typed("optimizer");
  const auto& make = maker_of(model, "optimizer", type, optimizers);
  if (parameters.empty()) throw model.error("optimizer", "the model has no parameters that learn");
  auto optimizer = make(section, parameters);
  section.finish();
  return optimizer;
}

std::optional<Schedule> make_schedule(const Section& model, torch::optim::Optimizer& optimizer) {
  if (!model.has("schedule")) return {};
  const auto [type, section] = model.typed("schedule");
  auto schedule = maker_of(model, "schedule", type, schedules)(section, optimizer);
  section.finish();
  return schedule;
}

}  // namespace hortator::simulation
