#include "simulation/training/trained_model.hpp"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "machine/cpu/openmp_threads.hpp"
#include "mpi/communicator.hpp"
#include "mpi/environment.hpp"
#include "simulation/calls/local_outcome.hpp"
#include "simulation/networks/exported_file.hpp"
#include "simulation/networks/networks.hpp"
#include "simulation/networks/standardized.hpp"
#include "simulation/settings/model_parts.hpp"
#include "simulation/training/buffer_copies.hpp"
#include "simulation/training/common_backward.hpp"
#include "simulation/training/network_call.hpp"
#include "simulation/training/results.hpp"
#include "step/gradients/protection.hpp"

namespace hortator::simulation {
namespace {

const mpi::Communicator& host_of(const Accelerator& accelerator) {
  return accelerator::Training::of(accelerator).host();
}

// A frozen TorchScript module has no parameters.
c10::ScalarType type_of(const torch::nn::Module& module, const Section& settings) {
  if (settings.has("dtype")) return scalar_type_of(settings);
  for (const auto& tensors : {module.parameters(), module.buffers()}) {
    for (const auto& tensor : tensors) {
      if (tensor.defined() && tensor.is_floating_point()) return tensor.scalar_type();
    }
  }
  return c10::kFloat;
}

std::int64_t samples_of(const TensorBatch& batch) {
  const auto& arrays = batch.targets.empty() ? batch.inputs : batch.targets;
  return arrays.empty() || arrays.front().dim() == 0 ? 1 : arrays.front().size(0);
}

/// 0, with gradients of 0: a rank without samples takes part in the backward pass.
at::Tensor loss_of_nothing(const std::vector<at::Tensor>& parameters, c10::Device device) {
  auto sum = at::zeros({}, at::TensorOptions(device));
  for (const auto& parameter : parameters) {
    const auto nothing = parameter.flatten().slice(0, 0, 0).sum();
    sum = sum + (nothing.is_complex() ? at::real(nothing) : nothing);
  }
  return sum;
}

}  // namespace

TrainedModel::TrainedModel(Accelerator& accelerator, std::string name, const Section& settings, const Policy& policy)
    : accelerator_(accelerator),
      name_(std::move(name)),
      policy_(policy),
      left_out_(name_, host_of(accelerator).rank() == 0) {
  all_succeed(host_of(accelerator_), [&] { build(settings); });
  prepare();
}

void TrainedModel::build(const Section& settings) {
  together_ = JointInference::read(settings);
  auto parts = make_model(settings);
  network_ = std::move(parts.network);
  learning_ = std::move(parts.learning);
  loss_ = std::move(parts.loss);
  optimizer_ = std::move(parts.optimizer);
  schedule_ = std::move(parts.schedule);
  max_norm_ = parts.max_norm;
  max_value_ = parts.max_value;
  weighing_ = parts.weighing;
  type_ = type_of(*network_, settings);
  require_forces_of_whole_parameters();
  accumulation_ = accelerator_.options().gradient_accumulation_steps;
}

void TrainedModel::require_forces_of_whole_parameters() const {
  if (!network_->differentiates() || accelerator_.options().zero.stage.value_or(0) < 3) return;
  throw UsageError({.what = text::concat("The model ", text::quote(name_), " has forces in a run with zero_stage 3"),
                    .why = "forces need a backward pass within the forward pass, when a rank has parts of parameters",
                    .hint = "use zero_stage 2"});
}

void TrainedModel::prepare() {
  if (together_) joint_ = std::make_unique<JointInference>(comm(), accelerator_.device(), name_, *together_);
  if (!optimizer_) {
    prepared_.emplace(accelerator_.prepare_model(network_, {.evaluation_mode = true}));
    return;
  }
  auto [model, optimizer] = accelerator_.prepare(network_, *optimizer_);
  prepared_.emplace(std::move(model));
  stepper_.emplace(std::move(optimizer));
  if (schedule_) schedule_.emplace(accelerator_.prepare(*schedule_));
}

const mpi::Communicator& TrainedModel::comm() const { return host_of(accelerator_); }

bool TrainedModel::is_normalized() const { return dynamic_cast<const Standardized*>(network_.get()) != nullptr; }

void TrainedModel::standardize(const FeatureStatistics& inputs, const FeatureStatistics& targets) {
  dynamic_cast<Standardized&>(*network_).standardize({inputs.mean(), inputs.deviation()},
                                                     {targets.mean(), targets.deviation()});
  has_statistics_ = true;
}

void TrainedModel::set_training(bool on) {
  if (is_training_ == on) return;
  network_->train(on);
  is_training_ = on;
}

TrainedModel::Tensors TrainedModel::adapted(const Tensors& tensors) const {
  Tensors all;
  all.reserve(tensors.size());
  for (const auto& tensor : tensors)
    all.push_back(tensor.to(accelerator_.device(), tensor.is_floating_point() ? type_ : tensor.scalar_type()));
  return all;
}

void TrainedModel::require_local_parameters(const char* call) const {
  if (!optimizer_ || accelerator_.options().zero.stage.value_or(0) < 3) return;
  throw UsageError({.what = text::concat(call, "() with zero_stage 3"),
                    .why = "each rank has only its part of the parameters, and computes alone here",
                    .hint = "use zero_stage 2, or export the model and infer in a run of its own"});
}

void TrainedModel::require_finite_parameters() const {
  if (!optimizer_ || accelerator_.options().zero.stage.value_or(0) == 3) return;
  const auto is_finite = [](const at::Tensor& one) { return one.isfinite().all().item<bool>(); };
  if (std::ranges::all_of(learning_, is_finite)) return;
  throw Error({.what = text::concat("The model ", text::quote(name_), " was not saved: its parameters are not finite"),
               .why = "a checkpoint that is there would be replaced by one that cannot be trained or used",
               .hint = "resume from the last checkpoint with a lower learning rate, or with clip_grad_norm"});
}

TrainedModel::Weights TrainedModel::weights() const {
  Weights all;
  for (const auto& item : network_->named_parameters()) all.emplace_back(item.key(), item.value());
  for (const auto& item : network_->named_buffers()) all.emplace_back(item.key(), item.value());
  std::erase_if(all, [](const auto& one) { return !one.second.defined(); });
  return all;
}

TrainedModel::Weights TrainedModel::whole_weights() const {
  require_local_parameters("share_weights");
  return weights();
}

TrainedModel::Weights TrainedModel::own_weights() const {
  if (optimizer_ && accelerator_.options().zero.stage.value_or(0) > 0) {
    throw UsageError(
        {.what = text::concat("The model ", text::quote(name_), " takes over weights in a run with zero_stage"),
         .why = "its ranks share one copy of the parameters",
         .hint = "use settings without zero_stage in the run that infers"});
  }
  return weights();
}

void TrainedModel::export_to(const char* target) {
  const auto* exported = dynamic_cast<const ExportedFile*>(network_.get());
  bool is_program = false;
  all_succeed(comm(), [&] {
    if (target == nullptr) throw UsageError({.what = "hortator_export got no folder", .hint = "pass the name of one"});
    is_program = std::string_view(target).ends_with(".pt2");
    if (!is_program || exported != nullptr) return;
    throw UsageError({.what = text::concat("hortator_export got the file ", text::quote(target), " for the model ",
                                           text::quote(name_), ", which no .pt2 file was read for"),
                      .why = "a .pt2 file holds the graph that Python exported, with other weights",
                      .hint = "pass the name of a folder, or use a model of `type: exported`"});
  });
  if (!is_program) return accelerator_.save_model(*prepared_, target);
  exported->model().write(accelerator_, target);
}

TrainedModel::Tensors TrainedModel::outputs_of(const Tensors& inputs) {
  set_training(false);
  const auto values = adapted(inputs);
  return computed(name_, inputs, [&] {
    if (accelerator_.mixed_precision() == Precision::no) return network_->forward(values);
    const auto mixed = accelerator_.autocast();
    auto results = network_->forward(values);
    for (auto& result : results) detail::to_float32(result);  // as results of prepared models are
    return results;
  });
}

bool TrainedModel::writes_directly(const TensorBatch& batch) {
  if (accelerator_.mixed_precision() != Precision::no) return false;
  set_training(false);
  return computed(name_, batch.inputs, [&] { return network_->forward_into(adapted(batch.inputs), batch.outputs); });
}

void TrainedModel::infer(const TensorBatch& batch) {
  const machine::OpenmpThreads threads(policy_.threads);
  require_local_parameters("infer");
  std::optional<c10::InferenceMode> inference;
  if (!network_->differentiates()) inference.emplace();
  const at::NoGradGuard no_grad;
  const bool joins = joint_ && mpi::is_usable();  // after MPI_Finalize each rank is on its own
  if (!joins && writes_directly(batch)) return;
  const auto compute = [this](const Tensors& inputs) { return outputs_of(inputs); };
  const auto results = joins ? joint_->infer(batch.inputs, compute) : compute(batch.inputs);
  if (results.size() != batch.outputs.size()) {
    throw UsageError({.what = text::concat("The model ", text::quote(name_), " has ",
                                           text::count(static_cast<long long>(results.size()), "output"),
                                           ", the batch has arrays for ", batch.outputs.size()),
                      .hint = "bind one array for each output (HORTATOR_OUTPUT)"});
  }
  for (std::size_t i = 0; i < results.size(); ++i) require_fit(results[i], batch.outputs[i], "output");
  for (std::size_t i = 0; i < results.size(); ++i) write_result(results[i], batch.outputs[i], "output");
}

// Distinguishes this model's calls from those of other models of the run.
std::int64_t TrainedModel::call_number(bool trains) const { return 2 * (policy_.number % 64) + (trains ? 1 : 0); }

TrainedModel::Tensors TrainedModel::in_units(Tensors outputs) const {
  const auto* standardized = dynamic_cast<const Standardized*>(network_.get());
  if (standardized == nullptr) return outputs;
  for (auto& output : outputs) output = standardized->in_units(output);
  return outputs;
}

at::Tensor TrainedModel::loss_of(const Tensors& outputs, const TensorBatch& batch) const {
  return computed(name_, batch.targets, [&] {
    const bool comparable = outputs.size() == batch.targets.size();
    return loss_(in_units(outputs), comparable ? in_units(adapted(batch.targets)) : adapted(batch.targets),
                 adapted(batch.loss_arguments));
  });
}

void TrainedModel::require_trainable() const {
  if (!optimizer_) {
    throw UsageError({.what = text::concat("The model ", text::quote(name_), " has no optimizer"),
                      .hint = text::concat("add optimizer: to models.", name_, " in the settings")});
  }
  const auto* standardized = dynamic_cast<const Standardized*>(network_.get());
  if (standardized == nullptr || has_statistics_ || standardized->has_numbers()) return;
  throw UsageError({.what = text::concat("The model ", text::quote(name_), " is normalised, and has no statistics yet"),
                    .why = "they come from the buffer that trains it",
                    .hint = "train it with hortator_buffer_train first, or leave normalize out"});
}

void TrainedModel::require_unsharded_parameters() const {
  if (accelerator_.options().zero.stage.value_or(0) < 3) return;
  throw UsageError({.what = "This rank has no samples for a training step with zero_stage 3",
                    .why = "the ranks join the parts of parameters in each forward pass",
                    .hint = "use zero_stage 2, or bind at least one sample on each rank"});
}

double TrainedModel::weight_of(std::int64_t samples) const {
  switch (weighing_) {
    case LossWeighing::by_samples:
      return static_cast<double>(samples);
    case LossWeighing::by_ranks:
      return samples > 0 ? 1 : 0;
    case LossWeighing::sums:
      return 1;
  }
  return 1;
}

/// Describes the loss to the other ranks. Reads it, which waits for the device, only if this rank wants the loss or if
/// losses are checked.
void TrainedModel::judge(const at::Tensor& loss, bool wants_loss, LocalLoss& mine) const {
  const bool looks = policy_.on_nonfinite != NonfiniteStep::proceed;
  if (!wants_loss && !looks) return;
  const auto number = loss.item<double>();
  if (wants_loss) mine.loss = number;
  mine.is_finite = !looks || std::isfinite(number);
}

// Under no_sync, the forward pass does not communicate: it may fail on this rank only.
at::Tensor TrainedModel::forward(const TensorBatch& batch, bool wants_loss, LocalLoss& mine) {
  mine.samples = samples_of(batch);
  mine.weight = weight_of(mine.samples);
  set_training(true);
  if (mine.samples == 0) {
    require_unsharded_parameters();
    if (wants_loss) mine.loss = 0;
    return loss_of_nothing(learning_, accelerator_.device());
  }
  const NoSync local({*prepared_});
  const auto outputs = computed(name_, batch.inputs, [&] { return (*prepared_)(adapted(batch.inputs)); });
  auto loss = loss_of(outputs, batch);
  judge(loss, wants_loss, mine);
  if (mine.is_finite || policy_.on_nonfinite != NonfiniteStep::fail) return loss;
  throw Error({.what = text::concat("The loss of the model ", text::quote(name_), " is ", loss.item<double>()),
               .why = "a number in its inputs, targets or parameters is not finite; no parameter was changed",
               .hint = "look for NaN in the arrays that are bound; on_nonfinite: skip leaves such steps out"});
}

TrainedModel::Step TrainedModel::train(const MakeBatch& make_batch, bool wants_loss) {
  const machine::OpenmpThreads threads(policy_.threads);
  BufferCopies buffers;  // a step that fails, or is left out, changes nothing
  at::Tensor loss;
  LocalLoss mine{.call = call_number(/*trains=*/true)};
  const auto outcome = attempt([&] {
    require_trainable();
    buffers.copy(*network_);
    loss = forward(make_batch(), wants_loss, mine);
  });
  const auto common = agree_on_loss(comm(), outcome, mine);
  const bool has_samples = common.samples > 0;
  if (!has_samples && accumulation_ == 1) return {.is_done = false};
  const bool is_done =
      common.is_finite && !refuses_update_ ? update(common.factor == 1 ? loss : loss * common.factor) : leave_out();
  if (is_done) buffers.keep_changes();
  return {.is_done = is_done && has_samples, .loss = common.loss};
}

// With its update, whose other micro-steps are then left out as well: a run is saved between updates.
bool TrainedModel::leave_out() {
  const bool is_first = !refuses_update_;
  stepper_->zero_grad();
  ++micro_steps_;
  refuses_update_ = !is_between_updates();
  if (is_first) left_out_.note_left_out("loss");
  return false;
}

bool TrainedModel::update(const at::Tensor& loss) {
  try {
    return try_update(loss);
  } catch (...) {  // the next step must not add to the gradients of this one
    stepper_->zero_grad();
    micro_steps_ = 0;
    throw;
  }
}

bool TrainedModel::try_update(const at::Tensor& loss) {
  ++micro_steps_;
  const auto part = accumulation_ == 1 ? loss : loss / accumulation_;
  if (!is_between_updates()) {
    const NoSync local({*prepared_});
    common_backward(accelerator_, part, learning_);
    return true;
  }
  common_backward(accelerator_, part, learning_);
  if (max_norm_) accelerator_.clip_grad_norm_(prepared_->parameters(), *max_norm_);
  if (max_value_) accelerator_.clip_grad_value_(prepared_->parameters(), *max_value_);
  const auto* const protection = accelerator::Training::of(accelerator_).control.protection();
  const auto skipped = protection == nullptr ? 0 : protection->skipped();
  stepper_->step();
  const bool is_left_out = protection != nullptr && protection->skipped() > skipped;
  if (is_left_out) {
    refuse_update();
  } else {
    left_out_.note_step();
  }
  if (schedule_) schedule_->step();
  stepper_->zero_grad();
  return !is_left_out;
}

/// A gradient of this update is not finite: all ranks come here, and the optimizer has not stepped.
void TrainedModel::refuse_update() {
  if (policy_.on_nonfinite != NonfiniteStep::fail) return left_out_.note_left_out("gradient");
  throw Error({.what = text::concat("A gradient of the model ", text::quote(name_), " is not a finite number"),
               .why = "no parameter was changed",
               .hint = "use a lower learning rate, or another loss; on_nonfinite: skip leaves such steps out"});
}

TrainedModel::Step TrainedModel::evaluate(const MakeBatch& make_batch, bool wants_loss) {
  const machine::OpenmpThreads threads(policy_.threads);
  LocalLoss mine{.call = call_number(/*trains=*/false)};
  const auto outcome = attempt([&] {
    require_local_parameters("evaluate");
    const auto batch = make_batch();
    mine.samples = samples_of(batch);
    mine.weight = weight_of(mine.samples);
    if (mine.samples == 0) {
      if (wants_loss) mine.loss = 0;
      return;
    }
    const at::NoGradGuard no_grad;
    const auto loss = loss_of(outputs_of(batch.inputs), batch);
    if (wants_loss) mine.loss = loss.item<double>();
  });
  const auto common = agree_on_loss(comm(), outcome, mine);
  return {.is_done = common.samples > 0, .loss = common.loss};
}

}  // namespace hortator::simulation
