#include <exception>
#include <hortator/accelerator.hpp>

#include "accelerator/prepared/prepared.hpp"
#include "accelerator/scopes/averaged_weights.hpp"
#include "accelerator/scopes/own_model.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"

namespace hortator {
EmaScope::EmaScope(std::shared_ptr<accelerator::AveragedWeights> averages)
    : averages_(std::move(averages)), exceptions_(std::uncaught_exceptions()) {
  averages_->enter();
}

EmaScope::~EmaScope() noexcept(false) { averages_->leave(/*alone=*/std::uncaught_exceptions() > exceptions_); }

Ema::Ema(Accelerator& accelerator, const ModelBase& model, const EmaOptions& options) {
  auto& training = accelerator::Training::of(accelerator);
  averages_ = std::make_shared<accelerator::AveragedWeights>(
      training,
      accelerator::own_model(training, model, "Ema", "its averages are saved with this Accelerator's checkpoints"),
      options);
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
