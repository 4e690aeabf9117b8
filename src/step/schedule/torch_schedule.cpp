#include "step/schedule/torch_schedule.hpp"

#include <cstddef>
#include <hortator/error.hpp>
#include <hortator/training/torch_schedule.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/text/text.hpp"
#include "step/capture/step_recording.hpp"

namespace hortator {
namespace step {
namespace {

/// The scheduler's protected members.
struct OpenScheduler : torch::optim::LRScheduler {
  static unsigned& steps_of(LRScheduler& scheduler) { return scheduler.*(&OpenScheduler::step_count_); }
  static std::vector<double> rates_of(const LRScheduler& scheduler) {
    return (scheduler.*(&OpenScheduler::get_current_lrs))();
  }
};

std::string rate_name(std::size_t group) { return text::concat("rates/", group); }

}  // namespace

bool sets_rates_of(const torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer) {
  if (optimizer.param_groups().empty()) return false;
  auto& options = optimizer.param_groups().front().options();
  const double rate = options.get_lr();
  const double other = rate + 1;
  options.set_lr(other);
  const auto seen = OpenScheduler::rates_of(scheduler);
  options.set_lr(rate);
  return seen.size() == optimizer.param_groups().size() && seen.front() == other &&
         OpenScheduler::rates_of(scheduler).front() == rate;
}

TorchScheduleCore::TorchScheduleCore(torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer)
    : scheduler_(&scheduler), optimizer_(&optimizer) {
  if (sets_rates_of(scheduler, optimizer)) return;
  throw UsageError({.what = "A scheduler of torch::optim was given with an optimizer that is not its own",
                    .why = "it sets the rates of the optimizer with which it was made",
                    .hint = "name that optimizer"});
}

void TorchScheduleCore::step() {
  link_.check_alive();
  if (auto* recording = link_.recording()) return recording->before_replay([this] { step_now(); });
  step_now();
}

void TorchScheduleCore::step_now() {
  const auto times = link_.session ? inner_steps(link_.pace, {.gradients_synchronised = link_.gradients_synchronised(),
                                                              .optimizer_was_skipped = link_.optimizer_was_skipped()})
                                   : 1;
  for (std::int64_t i = 0; i < times; ++i) scheduler_->step();
}

std::int64_t TorchScheduleCore::steps() const { return OpenScheduler::steps_of(*scheduler_); }

std::string TorchScheduleCore::effect() const { return "torch::optim's, " + step::effect(link_.pace, {}); }

StateDict TorchScheduleCore::state() const {
  StateDict state;
  state.put("step", steps());
  const auto rates = OpenScheduler::rates_of(*scheduler_);
  for (std::size_t group = 0; group < rates.size(); ++group) state.put(rate_name(group), rates[group]);
  return state;
}

void TorchScheduleCore::load(const StateDict& state) {
  const auto steps = state.get<std::int64_t>("step");
  if (steps < 0 || steps > std::numeric_limits<unsigned>::max())
    throw Error({.what = text::concat("a schedule's number of steps is ", steps)});
  std::vector<double> rates;
  for (std::size_t group = 0; group < optimizer_->param_groups().size(); ++group)
    rates.push_back(state.get<double>(rate_name(group)));
  OpenScheduler::steps_of(*scheduler_) = static_cast<unsigned>(steps);
  for (std::size_t group = 0; group < rates.size(); ++group)
    optimizer_->param_groups()[group].options().set_lr(rates[group]);
}

}  // namespace step

TorchSchedule::TorchSchedule(torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer)
    : ScheduleBase(std::make_shared<step::TorchScheduleCore>(scheduler, optimizer)) {}
TorchSchedule::TorchSchedule(const ScheduleBase& schedule) : ScheduleBase(schedule) {
  if (dynamic_cast<const step::TorchScheduleCore*>(&schedule.core()) == nullptr)
    throw UsageError({.what = "The schedule is not one of torch::optim's"});
}

void TorchSchedule::step() { static_cast<step::TorchScheduleCore&>(core()).step(); }

}  // namespace hortator
