#include "accelerator/training/step_control.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/protection/straggler_report.hpp"
#include "accelerator/training/reproducing.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "parallel/data_parallel/common_pass.hpp"
#include "runtime/debug_mode.hpp"
#include "step/gradients/protection.hpp"
#include "step/precision/grad_scaler.hpp"
#include "step/precision/loss_scale.hpp"

namespace hortator::accelerator {

namespace {

step::ReachCheck::Report report_of_reach_check() {
  using Report = step::ReachCheck::Report;
  return runtime::asked_for_debug_mode(core::process_variables()) ? Report::error : Report::warning;
}

step::ReachCheck::Warn warn_on_rank_0(const mpi::Communicator& host) {
  return [is_first = host.rank() == 0](std::string_view line) {
    if (is_first) log::write_warning(line);
  };
}

}  // namespace

StepControl::StepControl(const AcceleratorOptions& options, const Prepared& prepared, const mpi::Communicator& host,
                         const checkpoint::BackgroundSave& saves)
    : precision_(options.mixed_precision.value_or(Precision::no)),
      prepared_(prepared),
      accumulation_(options.gradient_accumulation_steps, options.gradient_accumulation),
      reach_check_(prepared.models(), report_of_reach_check(), warn_on_rank_0(host)),
      loss_weights_(prepared.models(), options.reproducible ? std::optional(options.virtual_shards) : std::nullopt),
      stopping_(host, saves) {}

StepControl::~StepControl() = default;

void StepControl::connect(const AcceleratorOptions& options, Channels& channels) {
  const auto& averaging = channels.mesh().averaging();
  common_pass_ = std::make_unique<parallel::CommonPass>(averaging.on_cpu.split(0, averaging.index()), averaging.host);
  if (precision_ == Precision::fp16 && options.grad_scaler.enabled) {
    scaler_ =
        std::make_unique<step::GradScaler>(options.grad_scaler, channels.device_communicator(), channels.device());
  }
  if (options.protection.on_nonfinite != OnNonfinite::proceed) {
    using View = step::Protection::GradientView;
    // Ranks with other experts, or other parts, have gradients of their own.
    const bool are_common = averaging.size() == channels.host().size() && !channels.expert_ranks();
    protection_ = std::make_unique<step::Protection>(options.protection, stopping_.votes(), channels.host(),
                                                     are_common ? View::common : View::separate);
  }
  if (options.stragglers.on_straggler && channels.host().size() > 1) {
    if (averaging.size() < channels.host().size() || options.reproducible) {
      throw UsageError({.what = text::concat("stragglers.on_straggler is set, and ",
                                             options.reproducible           ? "reproducible = true"
                                             : channels.stages() != nullptr ? "parallel.pipeline is used"
                                                                            : "parallel.tensor is used"),
                        .why = "times travel with gradients that all ranks average together",
                        .hint = "leave one of them out"});
    }
    stragglers_ = std::make_unique<StragglerReport>(options.stragglers, channels.host());
  }
  if (options.reproducible) {
    reproducing_ = std::make_unique<Reproducing>(options.virtual_shards, channels.mesh().data().on_device,
                                                 channels.device(), /*joins=*/channels.stages() != nullptr);
  }
}

void StepControl::disconnect() {
  scaler_.reset();
  protection_.reset();
  stragglers_.reset();
  reproducing_.reset();
  common_pass_.reset();
}

void StepControl::restart() {
  session_->end();
  session_ = std::make_shared<step::AcceleratorSession>();
  accumulation_.restart();
  loss_weights_.forget_all();
  lent_weights_ = 0;
  if (reproducing_) reproducing_->forget();
  if (common_pass_) common_pass_->forget_all();
  if (protection_) protection_->forget();
}

// With virtual shards a rank's gradients are ready when those of its last shard are: the loop decides.
bool StepControl::sync_gradients() const {
  const auto* loader = prepared_.active_loader();
  return accumulation_.sync_gradients() && (loader == nullptr || loader->ends_step());
}

void StepControl::expect_scaled_gradients() const {
  if (!scaler_) return;
  for (const auto& optimizer : prepared_.optimizers()) optimizer->scaled()->expect_scaled();
}

void StepControl::settle_steps() const {
  if (!scaler_) return;
  for (const auto& optimizer : prepared_.optimizers()) optimizer->settle();
  scaler_->apply_verdicts();
}

// A parameter of two optimizers would be unscaled twice.
void StepControl::scale_gradients_of(step::OptimizerCore& optimizer) const {
  if (!scaler_) return;
  optimizer.scale_by(*scaler_);
  const auto mine = step::tensor_set(optimizer.parameters());
  for (const auto& other : prepared_.optimizers()) {
    const auto theirs = other->parameters();
    if (std::none_of(theirs.begin(), theirs.end(),
                     [&](const at::Tensor& one) { return mine.contains(one.unsafeGetTensorImpl()); }))
      continue;
    throw UsageError({.what = "Two optimizers with a parameter in common were prepared under mixed_precision fp16",
                      .why = "each divides its gradients by the scale of the loss",
                      .hint = "give every parameter to one optimizer, or use bf16"});
  }
}

void StepControl::unscale_gradients_of(const std::vector<at::Tensor>& parameters) const {
  if (!scaler_) return;
  const auto wanted = step::tensor_set(prepared_.gradient_holders(parameters).all());
  for (const auto& optimizer : prepared_.optimizers()) {
    if (optimizer->scaled()->hold_any_of(wanted)) optimizer->scaled()->unscale();
  }
}

void StepControl::require_trained_weights() const {
  if (lent_weights_ == 0) return;
  throw UsageError({.what = "optimizer.step() was called while a model has averaged weights",
                    .why = "the step would change the average instead of the weights that are trained",
                    .hint = "end the scope of Ema::use() before you train"});
}

void StepControl::refuse_lent_weights(std::string_view call) const {
  if (lent_weights_ == 0) return;
  throw UsageError({.what = text::concat(call, " was called while a model has averaged weights"),
                    .why = "the end of Ema::use() puts back the weights that were trained before it",
                    .hint = "end the scope of Ema::use() before"});
}

void StepControl::refuse_protection_in(std::string_view scope) const {
  if (!protection_) return;
  throw UsageError({.what = text::concat("protection.on_nonfinite is set, and ", scope, " is used"),
                    .why = "the ranks do not make the same steps there, so that they cannot agree to leave one out",
                    .hint = "set protection.on_nonfinite to proceed, which is the default"});
}

// Ranks without batches are not here: the others announce to them what they send.
void StepControl::agree_on_models() const {
  if (prepared_.may_lack_ranks() || !prepared_.any_sends_gradients()) return;
  (pass_among_ != nullptr ? *pass_among_ : *common_pass_).agree();
}

bool StepControl::abandon_passes(std::string_view reason) const noexcept {
  const bool others_are_free = pass_among_ == nullptr || pass_among_->abandon(reason);
  return common_pass_->abandon(reason) && others_are_free;
}

bool StepControl::is_between_steps() const {
  return sync_gradients() && !prepared_.may_lack_ranks() && !prepared_.replicas_may_differ();
}

at::Tensor StepControl::scaled(const at::Tensor& loss) const { return scaler_ ? scaler_->scaled(loss) : loss; }

}  // namespace hortator::accelerator
