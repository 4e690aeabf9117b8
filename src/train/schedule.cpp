#include <hortator/error.hpp>
#include <hortator/schedule.hpp>

#include "base/text.hpp"
#include "train/course_schedule.hpp"

namespace hortator {
namespace {

train::Course course_by_factors(std::size_t groups, std::vector<Schedule::Factor> factors) {
  if (factors.size() != groups) {
    throw UsageError(
        {.what = text::concat("a Schedule got ", text::count(static_cast<long long>(factors.size()), "function"),
                              ", its optimizer has ", text::count(static_cast<long long>(groups), "parameter group")),
         .why = "each group's rate is its own function's",
         .hint = "give one function for all groups, or one a group"});
  }
  return {.setting = [factors = std::move(factors)](std::size_t group, double base_lr, std::int64_t step) {
    return train::GroupSetting{.lr = base_lr * factors[group](step)};
  }};
}

}  // namespace

double ScheduleBase::last_lr() const {
  const auto& groups = core_->optimizer().param_groups();
  return groups.empty() ? 0 : groups.front().options().get_lr();
}
std::int64_t ScheduleBase::steps() const { return core_->steps(); }
StateDict ScheduleBase::state() const { return core_->state(); }
void ScheduleBase::load(const StateDict& state) { core_->load(state); }

Schedule::Schedule(std::shared_ptr<train::CourseSchedule> core) : ScheduleBase(std::move(core)) {}
Schedule::Schedule(torch::optim::Optimizer& optimizer, Factor factor)
    : Schedule(std::make_shared<train::CourseSchedule>(optimizer, train::course_by_factor("", std::move(factor)))) {}
Schedule::Schedule(torch::optim::Optimizer& optimizer, std::vector<Factor> factors)
    : Schedule(std::make_shared<train::CourseSchedule>(
          optimizer, course_by_factors(optimizer.param_groups().size(), std::move(factors)))) {}

void Schedule::step() { static_cast<train::CourseSchedule&>(core()).step(); }

}  // namespace hortator
