#include <algorithm>
#include <cstdint>
#include <hortator/error.hpp>
#include <hortator/training/schedules.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "step/schedule/courses.hpp"

namespace hortator {
namespace {

using step::Course;

template <typename Options>
concept SetsMomenta = requires(const Options& options, torch::optim::Optimizer& optimizer) {
  step::course_of(options, optimizer);
};

struct CourseOf {
  torch::optim::Optimizer& optimizer;

  Course operator()(const std::function<double(std::int64_t)>& factor) const {
    if (factor) return step::course_by_factor("a function", factor);
    throw UsageError({.what = "A part of a schedule is a function that is empty"});
  }
  template <typename Options>
  Course operator()(const Options& options) const {
    if constexpr (SetsMomenta<Options>) {
      return step::course_of(options, optimizer);
    } else {
      return step::course_of(options);
    }
  }
};

std::vector<Course> courses_of(torch::optim::Optimizer& optimizer, const std::vector<SchedulePart>& parts,
                               const char* schedule) {
  if (parts.empty()) {
    throw UsageError({.what = text::concat(schedule, " got no parts"), .hint = "give it at least one schedule"});
  }
  std::vector<Course> courses;
  for (const auto& part : parts) courses.push_back(std::visit(CourseOf{optimizer}, part));
  return courses;
}

/// Courses one after the other.
struct Sequence {
  std::vector<Course> courses;
  std::vector<std::int64_t> begins;  ///< of each course; the first is 0

  step::GroupSetting operator()(std::size_t group, double base_lr, std::int64_t step) const {
    auto at = static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), step) - begins.begin()) - 1;
    auto setting = courses[at].setting(group, base_lr, step - begins[at]);
    for (; !setting.momentum && at > 0; --at) {
      const auto last = begins[at] - begins[at - 1] - 1;
      setting.momentum = courses[at - 1].setting(group, base_lr, last).momentum;
    }
    return setting;
  }
};

void check(const SequentialLr& options) {
  const bool is_rising = std::adjacent_find(options.milestones.begin(), options.milestones.end(),
                                            std::greater_equal<>()) == options.milestones.end();
  if (options.milestones.size() + 1 == options.parts.size() && is_rising &&
      (options.milestones.empty() || options.milestones.front() > 0))
    return;
  throw UsageError({.what = text::concat("sequential_lr got ", options.parts.size(), " parts and the milestones [",
                                         text::join(options.milestones, ", "), "]"),
                    .why = "each part but the first begins at a milestone",
                    .hint = "use one milestone less than parts, in rising order, the first from 1"});
}

/// Throws if a part is asked for rates after its end.
void check_end(const Course& course, std::int64_t length) {
  if (course.total_steps.value_or(length) >= length) return;
  throw UsageError({.what = text::concat(course.name, " has ", *course.total_steps, " total_steps, but its part has ",
                                         length, " steps"),
                    .why = "it defines no rate after its end",
                    .hint = "begin the next part earlier"});
}

}  // namespace

Schedule sequential_lr(torch::optim::Optimizer& optimizer, const SequentialLr& options) {
  check(options);
  Sequence sequence{.courses = courses_of(optimizer, options.parts, "sequential_lr"), .begins = {0}};
  sequence.begins.insert(sequence.begins.end(), options.milestones.begin(), options.milestones.end());
  Course whole{.name = "sequential_lr"};
  for (std::size_t i = 0; i < sequence.courses.size(); ++i) {
    const auto& course = sequence.courses[i];
    const auto begin = sequence.begins[i];
    if (i > 0) whole.milestones.push_back({.what = course.name + " begins", .step = begin});
    if (i + 1 < sequence.courses.size()) {
      check_end(course, sequence.begins[i + 1] - begin);
    } else if (course.total_steps) {
      whole.total_steps = begin + *course.total_steps;
    }
  }
  whole.setting = std::move(sequence);
  return step::make_schedule(optimizer, std::move(whole));
}

Schedule chained_lr(torch::optim::Optimizer& optimizer, const std::vector<SchedulePart>& parts) {
  auto courses = courses_of(optimizer, parts, "chained_lr");
  Course whole{.name = "chained_lr", .scales = true};
  for (const auto& course : courses) {
    if (!course.scales) {
      throw UsageError({.what = text::concat("chained_lr cannot take ", course.name),
                        .why = "it multiplies the factors of its parts, and this one sets rates of its own",
                        .hint = "leave eta_min out, or put it in sequential_lr"});
    }
    whole.milestones.insert(whole.milestones.end(), course.milestones.begin(), course.milestones.end());
  }
  whole.setting = [courses = std::move(courses)](std::size_t group, double base_lr, std::int64_t step) {
    step::GroupSetting setting{.lr = base_lr};
    for (const auto& course : courses) setting.lr = course.setting(group, setting.lr, step).lr;
    return setting;
  };
  return step::make_schedule(optimizer, std::move(whole));
}

}  // namespace hortator
