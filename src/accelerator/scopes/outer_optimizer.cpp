#include <algorithm>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>

#include "accelerator/scopes/outer_step.hpp"
#include "accelerator/scopes/own_steps.hpp"
#include "core/text/text.hpp"

namespace hortator {
namespace {

std::shared_ptr<step::ModelCore> model_to_step(const accelerator::Training& training, const ModelBase& model) {
  model.core().check_alive();
  for (const auto& ours : training.prepared.models()) {
    if (ours.get() == &model.core()) return ours;
  }
  throw UsageError({.what = "OuterOptimizer got a model that another Accelerator has prepared",
                    .why = "its momentum is saved with this Accelerator's checkpoints",
                    .hint = "prepare it with this Accelerator"});
}

}  // namespace

OuterOptimizer::OuterOptimizer(Accelerator& accelerator, const ModelBase& model, const OuterOptimizerOptions& options) {
  auto& training = accelerator::Training::of(accelerator);
  accelerator::require_own_steps(training, "OuterOptimizer");
  accelerator::require_whole_weights(training, "OuterOptimizer");
  step_ = std::make_shared<accelerator::OuterStep>(training, model_to_step(training, model), options);
  training.prepared.add_part({.save = [step = step_](auto& snapshot) { step->save(snapshot); },
                              .misfits = [step = step_](const auto& reader) { return step->misfits(reader); },
                              .load = [step = step_](const auto& reader) { step->load(reader); },
                              .name = text::concat("outer optimizer ", text::quote(options.name)),
                              .remember = [step = step_] { return step->remember(); }});
}

std::int64_t OuterOptimizer::steps() const { return step_->steps(); }

}  // namespace hortator
