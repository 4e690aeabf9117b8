#include "simulation/trained_model.hpp"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "simulation/common_backward.hpp"
#include "simulation/local_outcome.hpp"
#include "simulation/loss_agreement.hpp"
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

std::string shapes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> shapes;
  for (const auto& tensor : tensors) shapes.push_back(text::concat(tensor.scalar_type(), ' ', tensor.sizes()));
  return shapes.empty() ? "none" : text::join(shapes);
}

/// Calls the network. What LibTorch refuses is the caller's mistake, and gets the arrays' shapes.
template <typename Call>
auto computed(const std::string& name, const std::vector<at::Tensor>& inputs, const Call& call) {
  try {
    return call();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    throw UsageError({.what = text::concat("The model ", text::quote(name), " cannot compute with these inputs: ",
                                           text::first_line(error.what_without_backtrace())),
                      .why = "it got " + shapes_of(inputs),
                      .hint = "bind arrays of the shapes and types that the model was made for"});
  }
}

void write_result(const at::Tensor& result, const at::Tensor& to, const char* what) {
  if (result.sizes() != to.sizes()) {
    throw UsageError({.what = text::concat("The ", what, " has the shape ", result.sizes(), ", its array ", to.sizes()),
                      .hint = "bind an array of that shape"});
  }
  if (!c10::canCast(result.scalar_type(), to.scalar_type())) {
    throw UsageError(
        {.what = text::concat("The ", what, " has the type ", result.scalar_type(), ", its array ", to.scalar_type()),
         .why = "its fractions or imaginary parts would be lost",
         .hint = "bind an array of floating-point numbers, or of complex ones"});
  }
  at::Tensor(to).copy_(result);
}

}  // namespace

TrainedModel::TrainedModel(Accelerator& accelerator, std::string name, const Section& settings)
    : accelerator_(accelerator), name_(std::move(name)) {
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

// Under no_sync, the forward pass does not communicate: it may fail on this rank only.
double TrainedModel::train(const MakeBatch& make_batch, bool wants_loss) {
  at::Tensor loss;
  std::optional<double> number;
  const auto outcome = attempt([&] {
    if (!optimizer_) {
      throw UsageError({.what = text::concat("The model ", text::quote(name_), " has no optimizer"),
                        .hint = text::concat("add optimizer: to models.", name_, " in the settings")});
    }
    set_training(true);
    const auto batch = make_batch();
    const NoSync local({*prepared_});
    const auto outputs = computed(name_, batch.inputs, [&] { return (*prepared_)(adapted(batch.inputs)); });
    loss = loss_of(outputs, batch);
    if (wants_loss) number = loss.item<double>();
  });
  const double mean = agree_on_loss(host_of(accelerator_), outcome, number);
  try {
    update(loss);
  } catch (...) {  // the next step must not add to the gradients of this one
    stepper_->zero_grad();
    micro_steps_ = 0;
    throw;
  }
  return mean;
}

void TrainedModel::update(const at::Tensor& loss) {
  ++micro_steps_;
  const auto part = accumulation_ == 1 ? loss : loss / accumulation_;
  if (!is_between_updates()) {
    const NoSync local({*prepared_});
    return common_backward(accelerator_, part, learning_);
  }
  common_backward(accelerator_, part, learning_);
  if (max_norm_) accelerator_.clip_grad_norm_(prepared_->parameters(), *max_norm_);
  if (max_value_) accelerator_.clip_grad_value_(prepared_->parameters(), *max_value_);
  stepper_->step();
  if (schedule_) schedule_->step();
  stepper_->zero_grad();
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

double TrainedModel::evaluate(const MakeBatch& make_batch, bool wants_loss) {
  std::optional<double> number;
  const auto outcome = attempt([&] {
    require_local_parameters("evaluate");
    const auto batch = make_batch();
    const at::NoGradGuard no_grad;
    const auto loss = loss_of(outputs_of(batch.inputs), batch);
    if (wants_loss) number = loss.item<double>();
  });
  return agree_on_loss(host_of(accelerator_), outcome, number);
}

bool TrainedModel::writes_directly(const TensorBatch& batch) {
  if (accelerator_.mixed_precision() != Precision::no) return false;
  set_training(false);
  return computed(name_, batch.inputs, [&] { return network_->forward_into(adapted(batch.inputs), batch.outputs); });
}

void TrainedModel::infer(const TensorBatch& batch) {
  require_local_parameters("infer");
  const c10::InferenceMode inference;
  if (writes_directly(batch)) return;
  const auto results = outputs_of(batch.inputs);
  if (results.size() != batch.outputs.size()) {
    throw UsageError({.what = text::concat("The model ", text::quote(name_), " has ",
                                           text::count(static_cast<long long>(results.size()), "output"),
                                           ", the batch has arrays for ", batch.outputs.size()),
                      .hint = "bind one array for each output (HORTATOR_OUTPUT)"});
  }
  for (std::size_t i = 0; i < results.size(); ++i) write_result(results[i], batch.outputs[i], "output");
}

void TrainedModel::adjoint(const TensorBatch& batch, const at::Tensor& cotangent, const at::Tensor& gradient) {
  require_local_parameters("adjoint");
  auto inputs = adapted(batch.inputs);
  const auto differentiated = input_to_differentiate(batch);
  inputs.front() = differentiated;
  const auto outputs = outputs_of(inputs);
  if (outputs.empty() || !outputs.front().requires_grad()) {
    throw UsageError({.what = text::concat("The model ", text::quote(name_), " has no derivatives"),
                      .why = "its output does not depend on its first input by differentiable operators",
                      .hint = "use a model that LibTorch can differentiate: compiled packages only infer"});
  }
  const auto& output = outputs.front();
  const auto weights = adapted({cotangent}).front();
  if (weights.sizes() != output.sizes()) {
    throw UsageError(
        {.what = text::concat("The cotangent has the shape ", weights.sizes(), ", the output ", output.sizes())});
  }
  const auto gradients = computed(name_, batch.inputs, [&] {
    return torch::autograd::grad({output}, {differentiated}, {weights.to(output.scalar_type())});
  });
  const at::NoGradGuard no_grad;
  write_result(gradients.front(), gradient, "gradient");
}

at::Tensor TrainedModel::input_to_differentiate(const TensorBatch& batch) const {
  if (batch.inputs.empty())
    throw UsageError({.what = "The batch has no input", .hint = "bind an array as HORTATOR_INPUT"});
  const auto input = adapted({batch.inputs.front()}).front();
  if (input.is_floating_point() || input.is_complex()) return input.detach().requires_grad_();
  throw UsageError({.what = text::concat("The first input has the type ", input.scalar_type()),
                    .why = "there are no derivatives with respect to whole numbers",
                    .hint = "bind an array of floating-point numbers first"});
}

void TrainedModel::require_local_parameters(const char* call) const {
  if (!optimizer_ || accelerator_.options().zero.stage.value_or(0) < 3) return;
  throw UsageError({.what = text::concat(call, "() with zero_stage 3"),
                    .why = "each rank has only its part of the parameters, and computes alone here",
                    .hint = "use zero_stage 2, or export the model and infer in a run of its own"});
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
