#include <hortator/error.hpp>
#include <hortator/schedule.hpp>

#include "core/text/text.hpp"
#include "step/schedule/course_schedule.hpp"

namespace hortator {
namespace {

step::Course course_by_factors(std::size_t groups, std::vector<Schedule::Factor> factors) {
  if (factors.size() != groups) {
    throw UsageError({.what = text::concat(
                          "A Schedule got ", text::count(static_cast<long long>(factors.size()), "function"),
                          ", but its optimizer has ", text::count(static_cast<long long>(groups), "parameter group")),
                      .why = "each group has its own function",
                      .hint = "give one function for all groups, or one for each group"});
  }
  return {.setting = [factors = std::move(factors)](std::size_t group, double base_lr, std::int64_t step) {
    return step::GroupSetting{.lr = base_lr * factors[group](step)};
  }};
}

}  // namespace

double ScheduleBase::last_lr() const {
  const auto& groups = core_->optimizer().param_groups();
  return groups.empty() ? 0 : groups.front().options().get_lr();
}
std::vector<double> ScheduleBase::last_lrs() const {
  std::vector<double> rates;
  for (const auto& group : core_->optimizer().param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}
std::int64_t ScheduleBase::steps() const { return core_->steps(); }
StateDict ScheduleBase::state() const { return core_->state(); }
void ScheduleBase::load(const StateDict& state) { core_->load(state); }

Schedule::Schedule(std::shared_ptr<step::CourseSchedule> core) : ScheduleBase(std::move(core)) {}
Schedule::Schedule(torch::optim::Optimizer& optimizer, Factor factor)
    : Schedule(std::make_shared<step::CourseSchedule>(optimizer, step::course_by_factor("", std::move(factor)))) {}
Schedule::Schedule(torch::optim::Optimizer& optimizer, std::vector<Factor> factors)
    : Schedule(std::make_shared<step::CourseSchedule>(
          optimizer, course_by_factors(optimizer.param_groups().size(), std::move(factors)))) {}

void Schedule::step() { static_cast<step::CourseSchedule&>(core()).step(); }

}  // namespace hortator
