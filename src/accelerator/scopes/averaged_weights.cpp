#include "accelerator/scopes/averaged_weights.hpp"

#include <ATen/ops/_foreach_lerp.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/state/divided_state.hpp"
#include "accelerator/state/sharded_state.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {
namespace {

void check(const EmaOptions& options) {
  const auto refuse = [](const char* option, auto value, const char* why, const char* hint) {
    throw UsageError({.what = text::concat("EmaOptions::", option, " is ", value), .why = why, .hint = hint});
  };
  if (!(options.decay >= 0 && options.decay < 1))
    refuse("decay", options.decay, "it is the weight of the average in an update",
           "use 0.999, or another number below 1");
  if (!(options.min_decay >= 0 && options.min_decay <= options.decay))
    refuse("min_decay", options.min_decay, "it is the least decay of a warm-up", "use a number from 0 to decay");
  if (!(options.inv_gamma > 0)) refuse("inv_gamma", options.inv_gamma, "updates are divided by it", "use 1, or more");
  if (!(options.power > 0)) refuse("power", options.power, "the decay would not grow", "use 2/3 or 3/4");
  if (options.update_every < 1)
    refuse("update_every", options.update_every, "it counts calls of update()", "use 1 or more");
  if (options.name.empty() || options.name.find('/') != std::string::npos)
    refuse("name", text::quote(options.name), "it names the averages in checkpoints", "use a word without a slash");
}

at::ScalarType average_type(at::ScalarType type) { return at::isReducedFloatingType(type) ? at::kFloat : type; }

}  // namespace

AveragedWeights::AveragedWeights(Training& training, std::shared_ptr<step::ModelCore> model, EmaOptions options)
    : training_(training),
      session_(training.control.session()),
      model_(std::move(model)),
      options_(std::move(options)) {
  check(options_);
  const parallel::PartsOnly each_rank_has;
  for (const auto& [name, parameter] : model_->parameters()) {
    if (!parameter.requires_grad()) continue;
    Average one{.name = name, .parameter = parameter};
    const auto mine = held(one).detach();
    one.average = mine.to(average_type(mine.scalar_type()), /*non_blocking=*/false, /*copy=*/true);
    averages_.push_back(std::move(one));
  }
}

void AveragedWeights::update() {
  model_->check_alive();
  session_->refuse_in_recording("Ema::update() was called");
  if (in_use_) {
    throw UsageError({.what = "Ema::update() was called while the model has the averaged weights",
                      .why = "the average would be averaged with itself",
                      .hint = "end the scope of Ema::use() before you train"});
  }
  if (!training_.control.sync_gradients()) return;
  if (model_->is_apart() || model_->reducer().is_paused()) {
    throw UsageError({.what = "Ema::update() was called within LocalSGD",
                      .why = "ranks have different weights there, and the averages are those of all ranks",
                      .hint = "call it after the scope of LocalSGD"});
  }
  training_.control.settle_steps();  // the verdict on the last step may still be under way
  if (was_skipped()) return;
  if (++calls_ % options_.update_every != 0) return;
  ++updates_;
  average();
}

// Whether the model has stayed as it is: all optimizers of it have skipped their last step.
bool AveragedWeights::was_skipped() const {
  bool some_skipped = false;
  for (const auto& optimizer : training_.prepared.optimizers()) {
    const auto stepped = step::tensor_set(optimizer->parameters());
    const auto is_stepped = [&](const Average& one) { return stepped.contains(one.parameter.unsafeGetTensorImpl()); };
    if (std::ranges::none_of(averages_, is_stepped)) continue;
    if (!optimizer->step_was_skipped()) return false;
    some_skipped = true;
  }
  return some_skipped;
}

// One kernel for many tensors where the types are equal. Paged ones come into memory one after the other.
void AveragedWeights::average() {
  const at::NoGradGuard no_grad;
  const parallel::PartsOnly each_rank_has;
  std::vector<at::Tensor> averages, trained;
  for (auto& one : averages_) {
    const auto mine = held(one).detach();
    if (interception::carries_key(mine)) {
      one.average.lerp_(mine.to(one.average.scalar_type()), 1 - decay());
      continue;
    }
    averages.push_back(one.average);
    trained.push_back(mine.to(one.average.scalar_type()));
  }
  if (!averages.empty()) at::_foreach_lerp_(averages, trained, 1 - decay());
}

void AveragedWeights::copy_model() {
  const at::NoGradGuard no_grad;
  const parallel::PartsOnly each_rank_has;
  for (auto& one : averages_) one.average.copy_(held(one));
  calls_ = updates_ = 0;
}

void AveragedWeights::publish() {
  if (model_->sharded() != nullptr) model_->sharded()->publish_all();
}

void AveragedWeights::enter() {
  model_->check_alive();
  session_->refuse_in_recording("Ema::use() was called");
  if (in_use_) {
    throw UsageError({.what = "Ema::use() was called while the model has the averaged weights",
                      .why = "the weights that are trained would be lost",
                      .hint = "end the first scope before"});
  }
  const at::NoGradGuard no_grad;
  const parallel::PartsOnly each_rank_has;
  mpi::all_or_none(training_.host(), [this] {
    for (auto& one : averages_) one.trained = held(one).detach().clone();
  });
  if (model_->sharded() != nullptr) model_->sharded()->arrive();
  for (auto& one : averages_) held(one).copy_(one.average);
  in_use_ = true;
  training_.control.lend_weights(true);
  publish();
}

void AveragedWeights::leave(bool alone) {
  if (!session_->is_alive()) return leave_freed(alone);
  if (!alone && model_->sharded() != nullptr) model_->sharded()->arrive();
  const at::NoGradGuard no_grad;
  const parallel::PartsOnly each_rank_has;
  for (auto& one : averages_) {
    held(one).copy_(one.trained);
    one.trained.reset();
  }
  in_use_ = false;
  training_.control.lend_weights(false);
  if (!alone) return publish();
  if (model_->sharded() != nullptr) model_->sharded()->publish_alone(is_in_common_memory());
}

// The Accelerator may be gone as well.
void AveragedWeights::leave_freed(bool alone) {
  for (auto& one : averages_) one.trained.reset();
  in_use_ = false;
  if (alone) return;
  throw UsageError({.what = "The scope of Ema::use() ends after its Accelerator was destroyed or had freed its model",
                    .why = "the module keeps the averaged weights, and those that were trained are lost",
                    .hint = "end the scope before"});
}

// Whether all ranks see what one of them writes to an array of parameters that is not paged.
bool AveragedWeights::is_in_common_memory() const {
  const auto& channels = training_.channels;
  return channels.device().is_cpu() && channels.node().size() == channels.host().size() &&
         channels.mesh().all().on_device.traits().shares_memory;
}

void AveragedWeights::save(SnapshotDraft& draft) const {
  if (in_use_) {
    throw UsageError({.what = "save_state() was called while the model has averaged weights",
                      .why = "a resumed run would train the average",
                      .hint = "end the scope of Ema::use() before, or write the average with save_model()"});
  }
  for (const auto& one : averages_) put_like(draft, path_of(one.name), training_, one.parameter, one.average);
  draft.snapshot.common.put(path_of("updates"), updates_);
  draft.snapshot.common.put(path_of("calls"), calls_);
}

std::vector<std::string> AveragedWeights::misfits(const checkpoint::Reader& reader) const {
  if (!reader.values().contains(path_of("updates")))
    return {text::concat("it holds no averaged weights ", text::quote(options_.name))};
  std::vector<std::string> lines;
  for (const auto& one : averages_) {
    const auto found = reader.tensors().find(path_of(one.name));
    if (found == reader.tensors().end() || found->second.shape != whole_spec(training_, one.parameter).shape)
      lines.push_back(text::concat("it holds no averages of ", one.name, " in its shape"));
  }
  return lines;
}

void AveragedWeights::load(const checkpoint::Reader& reader) {
  if (!misfits(reader).empty()) {
    copy_model();
    throw Error({.what = text::concat("averaged weights ", text::quote(options_.name), ", which begin as the model")});
  }
  const at::NoGradGuard no_grad;
  for (auto& one : averages_) one.average.copy_(read_like(reader, path_of(one.name), training_, one.parameter));
  updates_ = reader.values().get<std::int64_t>(path_of("updates"));
  calls_ = reader.values().get<std::int64_t>(path_of("calls"));
}

void AveragedWeights::take_over(const parallel::RankGroup& ranks, int root) {
  struct Counts {
    std::int64_t calls;
    std::int64_t updates;
  };
  const at::NoGradGuard no_grad;
  const parallel::PartsOnly each_rank_has;
  for (const auto& one : averages_) ranks.communicator_of(one.average).broadcast(one.average, root).wait();
  const auto counts = mpi::broadcast(ranks.host, Counts{calls_, updates_}, root);
  calls_ = counts.calls;
  updates_ = counts.updates;
}

std::function<void()> AveragedWeights::remember() {
  std::vector<at::Tensor> copies;
  for (const auto& one : averages_) copies.push_back(one.average.clone());
  return [this, copies, calls = calls_, updates = updates_] {
    for (std::size_t i = 0; i < copies.size(); ++i) averages_[i].average.copy_(copies[i]);
    calls_ = calls;
    updates_ = updates;
  };
}

}  // namespace hortator::accelerator
