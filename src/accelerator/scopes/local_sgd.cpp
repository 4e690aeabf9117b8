#include <exception>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <hortator/parallel/outer_optimizer.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/scopes/local_steps.hpp"
#include "accelerator/scopes/outer_step.hpp"
#include "accelerator/scopes/own_model.hpp"
#include "accelerator/scopes/own_steps.hpp"
#include "accelerator/scopes/takeover.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"

namespace hortator {
namespace accelerator {
namespace {

void check_steps(std::int64_t steps) {
  if (steps >= 1) return;
  throw UsageError({.what = text::concat("LocalSGD was given ", text::count(steps, "step")),
                    .why = "it counts the local steps between two averages",
                    .hint = "use 1 or more"});
}

}  // namespace
}  // namespace accelerator

LocalSGD::LocalSGD(Accelerator& accelerator, const ModelBase& model, const LocalSGDOptions& options) {
  accelerator::check_steps(options.steps);
  auto& training = accelerator::Training::of(accelerator);
  accelerator::own_model(training, model, "LocalSGD", "it averages over this Accelerator's ranks");
  if (!options.enabled) return;
  accelerator::require_own_steps(training, "LocalSGD");
  training.control.refuse_protection_in("LocalSGD");
  if (training.data().size() == 1) return;
  training.prepared.require_together("LocalSGD");
  accelerator::require_group_steps(training, model.core(), "LocalSGD");
  accelerator::require_takeover(training, "LocalSGD");
  auto* const outer = options.outer != nullptr ? options.outer->step_.get() : nullptr;
  if (outer != nullptr && &outer->model() != &model.core()) {
    throw UsageError({.what = "LocalSGD got an OuterOptimizer of another model",
                      .why = "it steps the weights of the model that it was made with",
                      .hint = "make one for this model"});
  }
  steps_ = std::make_unique<accelerator::LocalSteps>(training, model, options.steps, outer);
}

LocalSGD::~LocalSGD() noexcept(false) {
  if (steps_ && std::uncaught_exceptions() <= steps_->exceptions_at_begin()) steps_->leave();
}

void LocalSGD::step() {
  if (steps_) steps_->step();
}

}  // namespace hortator
