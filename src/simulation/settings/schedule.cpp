#include "simulation/settings/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <hortator/training/schedules.hpp>
#include <map>
#include <string>

#include "simulation/sections/choice_of.hpp"

namespace hortator::simulation {
namespace {

using MakeSchedule = std::function<Schedule(const Section&, torch::optim::Optimizer&)>;

/// How far a schedule of `total` steps is, from 0 to 1.
double progress(std::int64_t step, std::int64_t total) {
  return static_cast<double>(std::min(step, total)) / static_cast<double>(total);
}

/// torch's PolynomialLR.
Schedule polynomial(const Section& section, torch::optim::Optimizer& optimizer) {
  return {optimizer, [total = section.integer("total_iters", 1), power = section.number("power", 1)](auto step) {
            return std::pow(1 - progress(step, total), power);
          }};
}

/// torch's LinearLR.
Schedule linear(const Section& section, torch::optim::Optimizer& optimizer) {
  const double start = section.number("start_factor", 1.0 / 3);
  const double end = section.number("end_factor", 1);
  return {optimizer, [=, total = section.integer("total_iters", 1)](auto step) {
            return start + (end - start) * progress(step, total);
          }};
}

const std::map<std::string, MakeSchedule> schedules = {
    {"polynomial", polynomial},
    {"linear", linear},
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
       const auto* const steps = s.has("T_max") ? "T_max" : "half_period";  // as PyTorch has it, or as C++ does
       return cosine_annealing(optimizer, {.half_period = s.integer(steps, 1), .eta_min = s.number("eta_min", 0)});
     }}};

}  // namespace

std::optional<Schedule> make_schedule(const Section& model, torch::optim::Optimizer& optimizer) {
  if (!model.has("schedule")) return {};
  const auto [type, section] = model.typed("schedule");
  auto schedule = choice_of(model, "schedule", type, schedules)(section, optimizer);
  section.finish();
  return schedule;
}

}  // namespace hortator::simulation
