#include "step/schedule/course.hpp"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

namespace hortator::step {

Course course_by_factor(std::string name, std::function<double(std::int64_t)> factor,
                        std::vector<Milestone> milestones) {
  return {
      .name = std::move(name),
      .setting = [factor = std::move(factor)](std::size_t, double base_lr,
                                              std::int64_t step) { return GroupSetting{.lr = base_lr * factor(step)}; },
      .milestones = std::move(milestones),
      .scales = true};
}

double* momentum_of(torch::optim::OptimizerOptions& options) {
  if (auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&options)) return &std::get<0>(adam->betas());
  if (auto* adamw = dynamic_cast<torch::optim::AdamWOptions*>(&options)) return &std::get<0>(adamw->betas());
  if (auto* sgd = dynamic_cast<torch::optim::SGDOptions*>(&options)) return &sgd->momentum();
  if (auto* rmsprop = dynamic_cast<torch::optim::RMSpropOptions*>(&options)) return &rmsprop->momentum();
  return nullptr;
}

}  // namespace hortator::step
