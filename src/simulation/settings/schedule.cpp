#include "simulation/settings/schedule.hpp"

#include <functional>
#include <hortator/training/schedules.hpp>
#include <map>
#include <string>

#include "simulation/sections/choice_of.hpp"

namespace hortator::simulation {
namespace {

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

}  // namespace

std::optional<Schedule> make_schedule(const Section& model, torch::optim::Optimizer& optimizer) {
  if (!model.has("schedule")) return {};
  const auto [type, section] = model.typed("schedule");
  auto schedule = choice_of(model, "schedule", type, schedules)(section, optimizer);
  section.finish();
  return schedule;
}

}  // namespace hortator::simulation
