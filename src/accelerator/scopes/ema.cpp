#include <algorithm>
#include <exception>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>

#include "accelerator/scopes/averaged_weights.hpp"
#include "core/text/text.hpp"

namespace hortator {
namespace {

std::shared_ptr<step::ModelCore> model_of(const accelerator::Training& training, const ModelBase& model) {
  model.core().check_alive();
  for (const auto& ours : training.prepared.models()) {
    if (ours.get() == &model.core()) return ours;
  }
  throw UsageError({.what = "Ema got a model that another Accelerator has prepared",
                    .why = "its averages are saved with this Accelerator's checkpoints",
                    .hint = "prepare it with this Accelerator"});
}

}  // namespace

EmaScope::EmaScope(std::shared_ptr<accelerator::AveragedWeights> averages)
    : averages_(std::move(averages)), exceptions_(std::uncaught_exceptions()) {
  averages_->enter();
}

EmaScope::~EmaScope() noexcept(false) { averages_->leave(/*alone=*/std::uncaught_exceptions() > exceptions_); }

Ema::Ema(Accelerator& accelerator, const ModelBase& model, const EmaOptions& options) {
  auto& training = accelerator::Training::of(accelerator);
  averages_ = std::make_shared<accelerator::AveragedWeights>(training, model_of(training, model), options);
  training.prepared.add_part(
      {.misfits = [averages = averages_](const auto& reader) { return averages->misfits(reader); },
       .load = [averages = averages_](const auto& reader) { averages->load(reader); },
       .name = text::concat("averaged weights ", text::quote(options.name)),
       .averages = options.name,
       .remember = [averages = averages_] { return averages->remember(); },
       .take_over = [averages = averages_](const auto& ranks, int root) { averages->take_over(ranks, root); },
       .draft = [averages = averages_](auto& draft) { averages->save(draft); }});
}

void Ema::update() { averages_->update(); }
EmaScope Ema::use() { return EmaScope(averages_); }
std::int64_t Ema::updates() const { return averages_->updates(); }
double Ema::decay() const { return averages_->decay(); }

}  // namespace hortator
