#include "accelerator/prepared/prepared.hpp"

#include <algorithm>
#include <exception>
#include <hortator/error.hpp>
#include <optional>
#include <utility>

#include "core/text/text.hpp"
#include "step/moments/divided_moments.hpp"

namespace hortator::accelerator {

void Prepared::add_model(std::shared_ptr<step::ModelCore> model) {
  models_.push_back(std::move(model));
  shard_optimizers();
}

void Prepared::add_optimizer(std::shared_ptr<step::OptimizerCore> optimizer) {
  optimizers_.push_back(std::move(optimizer));
  shard_optimizers();
}

void Prepared::add_object(RegisteredObject object) {
  const auto has_name = [&](const RegisteredObject& other) { return other.name == object.name; };
  if (std::any_of(objects_.begin(), objects_.end(), has_name)) {
    throw UsageError({.what = "An object is already registered under the name '" + object.name + "'",
                      .why = "a checkpoint keeps one object per name",
                      .hint = "choose another name"});
  }
  objects_.push_back(std::move(object));
}

void Prepared::add_part(CheckpointPart part) {
  const auto has_name = [&](const CheckpointPart& other) { return !part.name.empty() && other.name == part.name; };
  if (std::any_of(parts_.begin(), parts_.end(), has_name)) {
    throw UsageError({.what = "Checkpoints already hold " + part.name,
                      .why = "each of them has a name of its own there",
                      .hint = "choose another name"});
  }
  parts_.push_back(std::move(part));
}

void Prepared::remove_optimizer(std::size_t number) {
  auto& optimizer = *optimizers_.at(number);
  if (optimizer.shards() != nullptr) optimizer.shards()->give_back_parameters();
  optimizers_.erase(optimizers_.begin() + static_cast<std::ptrdiff_t>(number));
}

const LoaderBase* Prepared::active_loader() const {
  const LoaderBase* latest = nullptr;
  for (const auto& loader : loaders_) {
    if (loader.iterating() && (latest == nullptr || loader.started() > latest->started())) latest = &loader;
  }
  return latest;
}

bool Prepared::was_skipped(const torch::optim::Optimizer& optimizer) const {
  const auto skipped = [](const auto& one) { return one->step_was_skipped(); };
  const auto is_it = [&](const auto& one) { return one->wraps(optimizer); };
  const auto found = std::find_if(optimizers_.begin(), optimizers_.end(), is_it);
  return found == optimizers_.end() ? std::any_of(optimizers_.begin(), optimizers_.end(), skipped) : skipped(*found);
}

bool Prepared::may_lack_ranks() const {
  return std::any_of(models_.begin(), models_.end(), [](const auto& model) { return model->may_lack_ranks(); });
}

bool Prepared::any_sends_gradients() const {
  return std::any_of(models_.begin(), models_.end(), [](const auto& model) { return model->sends_gradients(); });
}

bool Prepared::replicas_may_differ() const {
  return std::any_of(models_.begin(), models_.end(), [](const auto& model) { return model->may_differ(); });
}

void Prepared::require_together(std::string_view call) const {
  const auto is_apart = [](const auto& model) { return model->is_apart(); };
  const bool apart = std::ranges::any_of(models_, is_apart);
  if (!apart && !may_lack_ranks()) return;
  throw UsageError({.what = text::concat(call, " was called within ", apart ? "LocalSGD" : "join_uneven_inputs"),
                    .why = "ranks may take different numbers of steps there, and all of them must take part in this",
                    .hint = "call it before that scope or after it"});
}

step::ParameterNames Prepared::parameter_names() const {
  step::ParameterNames names;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    for (const auto& item : models_[i]->module().named_parameters()) {
      names.emplace(item.value().unsafeGetTensorImpl(), std::to_string(i) + "/" + item.key());
    }
  }
  return names;
}

step::ParameterNames Prepared::stepped_names() const {
  auto names = parameter_names();
  for (const auto& optimizer : optimizers_) {
    if (optimizer->shards() == nullptr) continue;
    for (const auto& group : optimizer->shards()->groups()) {
      for (const auto& part : group) {
        const auto named = names.find(part.parameter.unsafeGetTensorImpl());
        if (named != names.end()) names.emplace(part.slice.unsafeGetTensorImpl(), named->second);
      }
    }
  }
  return names;
}

Prepared::NamedTensors Prepared::named_parameters() const {
  NamedTensors named;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const auto prefix = models_.size() == 1 ? "" : std::to_string(i) + '/';
    for (const auto& [name, tensor] : models_[i]->parameters()) named.emplace_back(prefix + name, tensor);
  }
  return named;
}

Prepared::NamedTensors Prepared::stepped() const {
  const auto names = stepped_names();
  NamedTensors named;
  for (const auto& optimizer : optimizers_) {
    for (const auto& group : optimizer->optimizer().param_groups()) {
      for (const auto& parameter : group.params()) {
        const auto found = names.find(parameter.unsafeGetTensorImpl());
        if (found == names.end()) continue;
        const auto& name = found->second;
        named.emplace_back(models_.size() == 1 ? name.substr(name.find('/') + 1) : name, parameter);
      }
    }
  }
  return named;
}

step::TensorSet Prepared::parameters() const {
  step::TensorSet parameters;
  for (const auto& model : models_) {
    for (const auto& parameter : model->module().parameters()) parameters.insert(parameter.unsafeGetTensorImpl());
  }
  return parameters;
}

parallel::FlatParameter Prepared::find_scattered(const at::Tensor& parameter) const {
  for (const auto& model : models_) {
    if (!model->scatters_gradients()) continue;
    if (const auto found = model->sharded()->find(parameter)) return found;
  }
  return {};
}

std::vector<at::Tensor> Prepared::counted(const std::vector<at::Tensor>& parameters) const {
  std::vector<at::Tensor> counted;
  for (const auto& parameter : parameters) {
    const auto has = [&](const auto& model) { return model->staged() != nullptr && model->staged()->knows(parameter); };
    const auto owner = std::ranges::find_if(models_, has);
    if (owner == models_.end() || (*owner)->staged()->is_first_with(parameter)) counted.push_back(parameter);
  }
  return counted;
}

step::GradientHolders Prepared::gradient_holders(const std::vector<at::Tensor>& parameters) const {
  step::GradientHolders holders;
  for (const auto& parameter : parameters) {
    const bool is_part = parallel::is_divided(parameter);
    if (const auto found = find_scattered(parameter)) {
      (is_part ? holders.shards_of_parts : holders.shards).push_back(found.slice());
    } else {
      (is_part ? holders.parts : holders.whole).push_back(parameter);
    }
  }
  return holders;
}

std::int64_t Prepared::gradient_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& model : models_) {
    for (const auto& parameter : model->module().parameters())
      bytes += parameter.requires_grad() && !parallel::is_of_other_stage(parameter)
                   ? static_cast<std::int64_t>(parameter.nbytes())
                   : 0;
  }
  return bytes;
}

void Prepared::clear_gradients() const {
  for (const auto& model : models_) {
    for (const auto& [name, parameter] : model->parameters()) parameter.mutable_grad().reset();
  }
}

void Prepared::retire_models() const {
  for (const auto& model : models_) model->retire();
}

// Optimizers first, so that the parameters that an optimizer still uses are known when models release theirs.
void Prepared::release_shards(ReleaseMode mode) const {
  for (const auto& optimizer : optimizers_) {
    if (optimizer->shards() != nullptr) optimizer->shards()->give_back_parameters();
  }
  std::vector<std::unique_ptr<parallel::ShardedModel>> all;
  for (const auto& model : models_) all.push_back(model->release());
  for (const auto& sharded : all) {
    if (sharded) sharded->release(mode);
  }
  // The other tensor ranks may not come: then each keeps its parts.
  if (mode == ReleaseMode::local || std::uncaught_exceptions() > 0) return;
  forget_moments_of_parts();
  for (const auto& model : models_) model->rejoin_parameters();
}

void Prepared::give_back_optimizers() const {
  for (const auto& optimizer : optimizers_) {
    auto* const present = optimizer->keeps_state() ? &optimizer->optimizer() : nullptr;
    if (optimizer->shards() != nullptr) optimizer->shards()->give_back();
    for (const auto& model : models_) model->rejoin_moments(present);
  }
}

void Prepared::forget_moments_of_parts() const {
  for (const auto& optimizer : optimizers_) {
    for (const auto& model : models_) {
      if (model->divided() != nullptr && optimizer->keeps_state())
        step::forget_moments(optimizer->optimizer(), *model->divided());
      if (model->staged() != nullptr && optimizer->keeps_state()) {
        for (const auto& [name, parameter] : model->staged()->parameters())
          optimizer->optimizer().state().erase(parameter.unsafeGetTensorImpl());
      }
    }
  }
}

void Prepared::clear() {
  models_.clear();
  optimizers_.clear();
  loaders_.clear();
  schedules_.clear();
  objects_.clear();
  parts_.clear();
}

// Optimizers that were destroyed keep no state.
void Prepared::divide_moments() const {
  for (const auto& optimizer : optimizers_) {
    for (const auto& model : models_) {
      if (model->divided() == nullptr || !optimizer->keeps_state()) continue;
      step::divide_moments(optimizer->optimizer(), *model->divided());
      optimizer->note_state();
    }
  }
}

void Prepared::shard_optimizers() const {
  divide_moments();
  for (const auto& optimizer : optimizers_) {
    if (optimizer->shards() == nullptr) continue;
    const bool keeps_state = optimizer->keeps_state();
    for (const auto& model : models_) {
      if (model->sharded() != nullptr) optimizer->shards()->take_over(*model->sharded());
    }
    if (keeps_state) optimizer->note_state();  // slices of what it was
  }
}

}  // namespace hortator::accelerator
