#include <hortator/accelerator.hpp>

#include "accelerator/prepared/prepared.hpp"
#include "accelerator/scopes/outer_step.hpp"
#include "accelerator/scopes/own_model.hpp"
#include "accelerator/scopes/own_steps.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"

namespace hortator {
OuterOptimizer::OuterOptimizer(Accelerator& accelerator, const ModelBase& model, const OuterOptimizerOptions& options) {
  auto& training = accelerator::Training::of(accelerator);
  accelerator::require_own_steps(training, "OuterOptimizer");
  const auto ours = accelerator::own_model(training, model, "OuterOptimizer",
                                           "its momentum is saved with this Accelerator's checkpoints");
  accelerator::require_group_steps(training, *ours, "OuterOptimizer");
  step_ = std::make_shared<accelerator::OuterStep>(training, ours, options);
  training.prepared.add_part({.misfits = [step = step_](const auto& reader) { return step->misfits(reader); },
                              .load = [step = step_](const auto& reader) { step->load(reader); },
                              .name = text::concat("outer optimizer ", text::quote(options.name)),
                              .remember = [step = step_] { return step->remember(); },
                              .draft = [step = step_](auto& draft) { step->save(draft); }});
}

std::int64_t OuterOptimizer::steps() const { return step_->steps(); }

}  // namespace hortator
