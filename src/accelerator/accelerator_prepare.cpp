#include <c10/util/Type.h>

#include <algorithm>
#include <hortator/training/fp8.hpp>
#include <hortator/training/torch_schedule.hpp>
#include <typeinfo>

#include "accelerator/channels/channels.hpp"
#include "accelerator/options/fp8_settings.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/prepared/refused_gradients.hpp"
#include "accelerator/rehearsal/rehearsal.hpp"
#include "accelerator/scopes/compression.hpp"
#include "accelerator/training/bindings.hpp"
#include "accelerator/training/clipping.hpp"
#include "accelerator/training/prepared_before.hpp"
#include "accelerator/training/reproducing.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "accelerator/weights/own_parameters.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/hdf5/library.hpp"
#include "interception/weight_operators.hpp"
#include "machine/memory/freed_memory.hpp"
#include "observe/operators/step_recording.hpp"
#include "runtime/banner.hpp"
#include "step/capture/step_recording.hpp"
#include "step/gradients/protection.hpp"
#include "step/moments/optimizer_state.hpp"
#include "step/schedule/metric_agreement.hpp"
#include "step/schedule/schedule_core.hpp"
#include "step/schedule/torch_schedule.hpp"

namespace hortator {
namespace {

// Describes the batches of an update: those of all ranks and all micro-steps.
std::string effective_batch(const LoaderBase& loader, std::int64_t micro_steps) {
  const auto batch = loader.total_batch_size();
  const auto all_ranks = batch > 0 ? std::to_string(batch * micro_steps) : "varying";
  const auto made_of =
      batch > 0 && micro_steps > 1 ? text::concat(" (", batch, " x ", micro_steps, " micro-steps)") : "";
  return text::concat(all_ranks, made_of, " of ",
                      loader.has_size() ? text::count(loader.dataset_size(), "sample") : "a stream");
}

// Only loaders that train accumulate. Which of several do is not known yet.
std::string effective_batches(const std::vector<LoaderBase>& loaders, std::int64_t micro_steps) {
  if (loaders.size() == 1) return effective_batch(loaders.front(), micro_steps);
  std::vector<std::string> lines;
  for (const auto& loader : loaders) lines.push_back(effective_batch(loader, 1));
  const auto in_training =
      micro_steps > 1 ? text::concat(" (an update in training takes ", micro_steps, " of them)") : "";
  return text::join(lines, "; ") + in_training;
}

void warn_of_unsaved(const torch::optim::Optimizer& optimizer) {
  log::warn("prepare() got an optimizer of type ", c10::demangle(typeid(optimizer).name()),
            ", which does not override save() and load(): checkpoints hold nothing of it, so that a resumed run starts "
            "with a new one. Override both, with empty functions if it has no state");
}

void refuse_rollback_of(const torch::optim::Optimizer& optimizer, OnNonfinite on_nonfinite) {
  if (on_nonfinite != OnNonfinite::rollback) return;
  throw UsageError({.what = text::concat("protection.on_nonfinite is rollback, and prepare() got an optimizer of type ",
                                         c10::demangle(typeid(optimizer).name()), ", which saves nothing"),
                    .why = "a rollback restores an optimizer's state through its save() and load()",
                    .hint = "override both, with empty functions if it has no state, or use skip"});
}

// Its state would be saved as bytes, which differ between stages.
void refuse_stages_of(const torch::optim::Optimizer& optimizer) {
  if (step::saves_by_parameter(optimizer)) return;
  throw UsageError({.what = text::concat("prepare() got an optimizer of type ", c10::demangle(typeid(optimizer).name()),
                                         " with parallel.pipeline"),
                    .why = "a rank has the parameters of its stages only, and its checkpoints "
                           "would hold the bytes of one stage for all",
                    .hint = "derive it from hortator::NamedOptimizer, or use an optimizer of torch::optim"});
}

// Moves only buffers of a paged module, which may not fit on the device as a whole; its parameters are paged in.
void place(torch::nn::Module& module, c10::Device device, bool is_paged) {
  if (device.is_cpu() || !is_paged) return module.to(device);
  const at::NoGradGuard no_grad;
  for (auto& buffer : module.buffers()) {
    if (buffer.defined()) buffer.set_data(buffer.to(device));
  }
}

// Layers that the launcher asks to recompute, in models that are trained. On all ranks alike: they have one model.
void recompute_as_launched(torch::nn::Module& module, const RecomputeLayersOptions& asked) {
  try {
    detail::recompute_layers(module, asked);
  } catch (const UsageError& error) {
    throw UsageError({.what = text::concat("HORTATOR_RECOMPUTE_LAYERS: ", error.what()),
                      .why = "the launcher or the settings file asks for it (fsdp_activation_checkpointing)",
                      .hint = "name a class of layers that can be recomputed (--recompute-layers all: every one), or "
                              "call recompute() in forward and remove the setting"});
  }
}

/// Unless the program has called fp8() itself.
void compute_in_fp8(torch::nn::Module& module, const ParallelConfig& parallel) {
  if (parallel.tensor > 1)
    throw UsageError({.what = "mixed_precision fp8 was asked for with parallel.tensor",
                      .why = "each rank would scale its part of a weight by other factors",
                      .hint = "use bf16, or other axes than tensor"});
  const auto has_fp8 = [](const at::Tensor& parameter) {
    return interception::operator_of(parameter, interception::WeightLayer::fp8) != nullptr;
  };
  if (std::ranges::none_of(module.parameters(), has_fp8))
    detail::fp8(module, accelerator::fp8_settings(core::process_variables()));
}

void convert_buffers(const torch::nn::Module& module, c10::ScalarType type) {
  for (auto& buffer : module.buffers()) {
    if (buffer.defined() && at::isFloatingType(buffer.scalar_type())) buffer.set_data(buffer.to(type));
  }
}

// Once per process, so that what the user sets in the allocator later is kept. Weights are packed where memory is
// scarce.
void tune_freed_memory_once(const std::vector<at::Tensor>& parameters) {
  const bool is_scarce = std::ranges::any_of(parameters, interception::is_packed);
  [[maybe_unused]] static const bool is_tuned =
      is_scarce ? machine::return_freed_blocks() : machine::keep_freed_memory();
}

}  // namespace

std::shared_ptr<step::ModelCore> Accelerator::make_model(torch::nn::Module& module, const PrepareModelOptions& chosen) {
  if (auto known = accelerator::prepared_before(*training_, module)) return known;
  training_->settle_seed();
  if (!chosen.evaluation_mode && !options().ddp.find_unused_parameters) accelerator::require_own_parameters(module);
  const auto& recomputed = training_->launched().recomputed;
  if (!chosen.evaluation_mode && recomputed) recompute_as_launched(module, *recomputed);
  const auto work = chosen.evaluation_mode   ? step::ModelWork::evaluation
                    : options().reproducible ? step::ModelWork::sharding
                                             : step::ModelWork::training;
  const auto* sharding = training_->channels.zero() ? &training_->channels.zero()->sharding() : nullptr;
  if (chosen.device_placement.value_or(options().device_placement))
    place(module, device(), !chosen.evaluation_mode && sharding != nullptr && sharding->pages_parameters());
  if (const auto type = options().mixed_precision_policy.buffer) convert_buffers(module, *type);
  // Sharded runs must hold as little memory as possible.
  if (device().is_cpu() && sharding == nullptr) tune_freed_memory_once(module.parameters());
  if (mixed_precision() == Precision::fp8) compute_in_fp8(module, options().parallel);
  const auto name = text::concat("model ", training_->prepared.models().size());
  auto binding = accelerator::model_binding(*training_, name);
  if (work == step::ModelWork::training) binding.own_average = accelerator::low_rank_average(*training_);
  auto model = step::ModelCore::prepare(module, name, training_->control.session(), binding,
                                        training_->prepared.parameters(), work);
  model->compute_in(training_->control.precision(), training_->options().autocast);
  model->return_in(options().mixed_precision_policy.output);
  if (training_->control.reproducing()) training_->control.reproducing()->shards().add(*model);
  if (parallel::has_synchronized_norms(module)) {
    parallel::join_synchronized_norms(module, training_->channels.shared_statistics());
  }
  training_->prepared.add_model(model);
  if (training_->recording) training_->recording->note_prepared();
  return model;
}

std::shared_ptr<step::OptimizerCore> Accelerator::make_optimizer(torch::optim::Optimizer& optimizer,
                                                                 bool inherits_save) {
  if (auto known = accelerator::prepared_before(*training_, optimizer)) return known;
  if (training_->channels.stages() != nullptr) refuse_stages_of(optimizer);
  const bool forgets_on_save = inherits_save && step::saves_nothing(optimizer);
  if (forgets_on_save) {
    refuse_rollback_of(optimizer, options().protection.on_nonfinite);
    if (is_main_process()) warn_of_unsaved(optimizer);
  }
  const auto max_norm = training_->launched().max_norm;
  const auto itself = std::make_shared<std::weak_ptr<const step::OptimizerCore>>();
  auto prepared = std::make_shared<step::OptimizerCore>(
      optimizer, training_->control.session(),
      step::OptimizerHooks{
          .gradients_synchronised = [training = training_.get()] { return training->control.sync_gradients(); },
          .synchronise =
              [training = training_.get(), max_norm, itself] {
                auto& control = training->control;
                control.require_trained_weights();
                if (auto* const recording = control.session()->recording())
                  recording->require([&control] { return !control.has_lent_weights(); });
                training->synchronise_gradients();
                const auto optimizer = itself->lock();
                if (optimizer && max_norm) accelerator::clip_norm(*training, optimizer->parameters(), *max_norm);
                if (!training->prepared.is_first(optimizer.get())) return;
                if (training->recording) training->recording->before_update();
                accelerator::note_update_in_rehearsal(*training);
              },
          .stepped =
              [training = training_.get(), itself] {
                if (training->recording && training->prepared.is_first(itself->lock().get()))
                  training->recording->after_update();
              },
          .cleared = [training = training_.get()](const auto& parameters) { training->note_cleared(parameters); },
          .kernel = options().fused_optimizer ? step::StepKernel::fused : step::StepKernel::own,
          .protection = training_->control.protection(),
          .any_nonfinite = [training = training_.get()] { return accelerator::any_new_nonfinite(training->prepared); },
          .mean_loss = [training = training_.get()](const auto& loss) { return training->mean_loss(loss); },
          .abandon = [training = training_.get()](std::string_view reason) { training->abandon(reason); }});
  *itself = prepared;
  if (forgets_on_save) prepared->note_forgets_on_save();
  if (training_->channels.zero()) {
    const auto& sharding = training_->channels.zero()->sharding();
    const bool are_whole = !sharding.scatters_gradients() || options().reproducible;
    prepared->shard(are_whole, sharding.moments, training_->host());
  }
  training_->control.scale_gradients_of(*prepared);
  training_->prepared.add_optimizer(prepared);
  if (training_->recording) training_->recording->note_prepared();
  return prepared;
}

void Accelerator::attach(const LoaderBase& loader, const PrepareDataLoaderOptions& chosen) {
  const auto same = [&](const LoaderBase& other) { return other.shares_state_with(loader); };
  if (std::any_of(training_->prepared.loaders().begin(), training_->prepared.loaders().end(), same)) return;
  training_->settle_seed();
  LoaderBase prepared = loader;
  prepared.bind(
      accelerator::loader_binding(*training_, prepared, chosen.device_placement.value_or(options().device_placement)));
  training_->prepared.add_loader(prepared);
}

// A schedule that is attached after the banner was printed is logged on a line of its own.
void Accelerator::attach(const ScheduleBase& schedule) {
  auto& core = schedule.core();
  if (core.is_attached_to(*training_->control.session())) return;
  core.attach(
      {.session = training_->control.session(),
       .pace = step::pace_of({.rule = options().schedule_step,
                              .with_optimizer = options().step_scheduler_with_optimizer,
                              .split_batches = options().data.split_batches,
                              .world = options().reproducible ? options().virtual_shards : training_->data().size()}),
       .gradients_synchronised = [training = training_.get()] { return training->control.sync_gradients(); },
       .optimizer_was_skipped = [training = training_.get(),
                                 &optimizer = core.optimizer()] { return training->prepared.was_skipped(optimizer); },
       .agree_on_metric = [&host = training_->host()](double metric) { return step::agree_on_metric(host, metric); }});
  training_->prepared.add_schedule(schedule);
  if (training_->output.is_announced() && is_main_process()) log::info("schedule: ", core.effect());
}

TorchSchedule Accelerator::attach(torch::optim::LRScheduler& scheduler, const TorchOptimizers& beside) {
  for (const auto& known : training_->prepared.schedules()) {
    auto* const core = dynamic_cast<step::TorchScheduleCore*>(&known.core());
    if (core != nullptr && core->wraps(scheduler)) return TorchSchedule(known);
  }
  auto optimizers = beside;
  for (const auto& known : training_->prepared.optimizers()) optimizers.push_back(&known->optimizer());
  const auto own = std::ranges::find_if(optimizers, [&](auto* one) { return step::sets_rates_of(scheduler, *one); });
  if (own == optimizers.end()) {
    throw UsageError({.what = "prepare() got a scheduler of torch::optim without its optimizer",
                      .why = "the scheduler steps with the updates of its optimizer, and does not name it",
                      .hint = "prepare the optimizer in the same call, or before"});
  }
  TorchSchedule schedule(scheduler, **own);
  attach(static_cast<const ScheduleBase&>(schedule));
  return schedule;
}

// Printed by the first prepare(), when the effective batch size is known.
void Accelerator::announce_once() {
  if (training_->output.is_announced()) return;
  training_->output.note_announced();
  runtime::BannerExtras extras{.libraries = {formats::loaded_hdf5().version}, .lines = {}};
  if (mixed_precision() != Precision::no) {
    const bool is_slow = mixed_precision() == Precision::fp16 && device().is_cpu();
    extras.lines.emplace_back("mixed precision",
                              text::concat(to_string(mixed_precision()), is_slow ? " (slow on a CPU)" : ""));
  }
  if (const auto mesh = training_->channels.mesh().text(); !mesh.empty()) extras.lines.emplace_back("mesh", mesh);
  if (training_->channels.zero()) extras.lines.emplace_back("sharded", training_->channels.zero()->text());
  if (!training_->prepared.loaders().empty()) {
    extras.lines.emplace_back("effective batch",
                              effective_batches(training_->prepared.loaders(), gradient_accumulation_steps()));
  }
  for (const auto& schedule : training_->prepared.schedules())
    extras.lines.emplace_back("schedule", schedule.core().effect());
  runtime::announce(world(), extras);
}

}  // namespace hortator
