#include "simulation/training/trained_model.hpp"

#include <ATen/ops/isfinite.h>

#include <algorithm>

#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "simulation/calls/local_outcome.hpp"
#include "simulation/networks/networks.hpp"
#include "simulation/networks/standardized.hpp"
#include "simulation/settings/model_parts.hpp"

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
  accumulation_ = accelerator_.options().gradient_accumulation_steps;
}

void TrainedModel::prepare() {
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

void TrainedModel::export_to(const char* folder) {
  all_succeed(comm(), [&] {
    if (folder == nullptr) throw UsageError({.what = "hortator_export got no folder", .hint = "pass its name"});
  });
  accelerator_.save_model(*prepared_, folder);
}

}  // namespace hortator::simulation
