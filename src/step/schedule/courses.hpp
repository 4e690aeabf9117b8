#pragma once

#include <torch/optim/optimizer.h>

#include <hortator/training/schedules.hpp>

#include "step/schedule/course_schedule.hpp"

/// The courses of the ready-made schedules. Each throws UsageError for options that give none.
namespace hortator::step {

Course course_of(const ConstantWarmup& options);
Course course_of(const LinearWarmup& options);
Course course_of(const CosineWarmup& options);
Course course_of(const StepLr& options);
Course course_of(const MultiStepLr& options);
Course course_of(const ExponentialLr& options);
Course course_of(const ConstantLr& options);
Course course_of(const LinearLr& options);
Course course_of(const PolynomialLr& options);
Course course_of(const CosineAnnealing& options);
Course course_of(const CosineWarmRestarts& options);

/// Those that set momenta also look at the optimizer's groups.
Course course_of(const OneCycle& options, torch::optim::Optimizer& optimizer);
Course course_of(const CyclicLr& options, torch::optim::Optimizer& optimizer);

/// Throws UsageError, in the name of `schedule`, unless each group of the optimizer has a momentum.
void require_momentum(torch::optim::Optimizer& optimizer, const char* schedule);

}  // namespace hortator::step
