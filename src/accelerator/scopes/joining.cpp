#include "accelerator/scopes/joining.hpp"

#include <algorithm>
#include <exception>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/scopes/own_model.hpp"
#include "accelerator/scopes/takeover.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "mpi/collectives.hpp"
#include "parallel/experts/divided_experts.hpp"
#include "step/precision/grad_scaler.hpp"

namespace hortator::accelerator {

Joining::Joining(Training& training, std::vector<ModelBase> models, const JoinOptions& options)
    : training_(training),
      models_(std::move(models)),
      uneven_(training.data().host),
      exceptions_(std::uncaught_exceptions()) {
  for (const auto& model : models_)
    own_model(training_, model, "join_uneven_inputs", "this Accelerator's ranks do not follow its collectives");
  if (training_.averaging().size() > training_.data().size()) {
    throw UsageError({.what = "join_uneven_inputs was called with parallel.context",
                      .why = "ranks without batches cannot follow what the others exchange in the middle of a pass",
                      .hint = "leave DataOptions::even_batches on"});
  }
  if (training_.channels.stages() != nullptr) {
    throw UsageError({.what = "join_uneven_inputs was called with parallel.pipeline",
                      .why = "a rank without batches cannot follow what stages send to each other",
                      .hint = "leave DataOptions::even_batches on"});
  }
  if (training_.channels.expert_ranks()) {
    throw UsageError({.what = "join_uneven_inputs was called with parallel.experts",
                      .why = "tokens of other ranks travel to the experts of ranks without batches",
                      .hint = "leave DataOptions::even_batches on"});
  }
  training_.control.refuse_protection_in("join_uneven_inputs");
  if (training_.data().size() == 1) return;
  enabled_ = !options.even_batches.value_or(training_.options().data.even_batches);
  if (enabled_) check_can_follow();
  if (options.even_batches) override_even_batches(*options.even_batches);
  for (std::size_t i = 0; enabled_ && i < models_.size(); ++i)
    models_[i].core().announce_by(&uneven_, static_cast<int>(i));
  if (enabled_ && training_.control.scaler()) training_.control.scaler()->announce_by(&uneven_);
}

Joining::~Joining() {
  for (const auto& model : models_) model.core().announce_by(nullptr, 0);
  if (training_.control.scaler()) training_.control.scaler()->announce_by(nullptr);
  for (auto& [loader, even] : overridden_) loader.set_even_batches(even);
}

void Joining::check_can_follow() const {
  training_.prepared.require_together("join_uneven_inputs");
  require_takeover(training_, "join_uneven_inputs");
  if (training_.channels.zero()) {
    throw UsageError({.what = "join_uneven_inputs was called under ZeRO",
                      .why = "ranks without batches cannot take their part in the others' steps",
                      .hint = "leave DataOptions::even_batches on, or use stage 0"});
  }
  for (const auto& model : models_) {
    if (parallel::has_experts(model.core().module())) {
      throw UsageError({.what = "join_uneven_inputs got " + model.core().name() + ", which has mixtures of experts",
                        .why = "ranks without batches cannot follow what load_balancing_loss exchanges",
                        .hint = "leave DataOptions::even_batches on"});
    }
    if (!parallel::has_synchronized_norms(model.core().module())) continue;
    throw UsageError({.what = "join_uneven_inputs got " + model.core().name() +
                              ", which has SyncBatchNorm layers (or BatchNorm ones, synchronised)",
                      .why = "ranks without batches cannot follow what these exchange in the middle of a pass",
                      .hint = "leave DataOptions::even_batches on, or use BatchNorm"});
  }
}

void Joining::override_even_batches(bool even) {
  try {
    for (auto& loader : training_.prepared.loaders()) {
      overridden_.push_back({.loader = loader, .even = loader.even_batches()});
      loader.set_even_batches(even);
    }
  } catch (...) {  // the program is in a loop over one of them, and no destructor restores the others
    for (auto& [loader, before] : overridden_) loader.set_even_batches(before);
    throw;
  }
}

void Joining::leave() {
  if (enabled_) copy_from_last(follow_the_others());
}

bool Joining::follow_the_others() {
  bool among_last = true;
  for (auto next = uneven_.listen(); next.what != parallel::UnevenInputs::Collective::none; next = uneven_.listen()) {
    among_last = false;
    next.what == parallel::UnevenInputs::Collective::judge_gradients
        ? training_.control.scaler()->follow()
        : models_[static_cast<std::size_t>(next.model)].core().follow(next);
  }
  return among_last;
}

// Ranks that ran out of batches earlier have missed the last steps.
void Joining::copy_from_last(bool among_last) {
  const auto& host = training_.data().host;
  const int last = mpi::all_reduce(host, among_last ? host.rank() : -1, mpi::Op::max);
  for (const auto& model : models_) model.core().copy_from(last);
  take_over_steps(training_, host, last);
  for (const auto& part : training_.prepared.parts()) {
    if (part.take_over) part.take_over(training_.data(), last);
  }
}

}  // namespace hortator::accelerator
