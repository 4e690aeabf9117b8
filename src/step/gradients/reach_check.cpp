#include "step/gradients/reach_check.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "core/log.hpp"
#include "step/gradients/reach_marks.hpp"

namespace hortator::step {

ReachCheck::ReachCheck(const Models& models, Report report, Warn warn)
    : models_(models), report_(report), warn_(warn ? std::move(warn) : Warn(log::write_warning)) {}

void ReachCheck::run(const std::function<void()>& backward) {
  if (is_over_) return backward();
  const auto before = marks_of(models_);
  backward();
  is_over_ = report_ == Report::warning;
  if (std::any_of(before.begin(), before.end(), [](const auto& marks) { return marks.have_changed(); })) return;
  const Problem problem = {.what = "backward() got a loss that reaches no prepared model",
                           .why =
                               "none of their parameters has got a gradient, so that nothing is averaged over the "
                               "ranks, and prepared optimizers have nothing to step",
                           .hint = "prepare the model, and compute the loss with it"};
  if (report_ == Report::error) throw UsageError(problem);
  warn_(to_string(problem));
}

}  // namespace hortator::step
