#pragma once

// Implements the Accelerator's templates on models and optimizers that are prepared. Included by accelerator.hpp.

namespace hortator {

template <typename Step>
CapturedStep Accelerator::capture(Step step, const CaptureOptions& options) {
  return make_captured(detail::step_of_inputs(std::move(step)), options);
}

template <std::derived_from<ModelBase>... Models>
MicroStep Accelerator::accumulate(const Models&... models) {
  if (begin_micro_step()) return MicroStep({});
  return MicroStep(NoSync(std::vector<ModelBase>{models...}));
}

template <std::derived_from<ModelBase>... Models>
requires(sizeof...(Models) > 0) SyncInBackward Accelerator::trigger_sync_in_backward(const Models&... models)
const { return SyncInBackward(std::vector<ModelBase>{models...}); }

template <std::derived_from<ModelBase>... Models>
requires(sizeof...(Models) > 0) NoSync Accelerator::no_sync(const Models&... models)
const { return NoSync(std::vector<ModelBase>{models...}); }

template <std::same_as<Optimizer>... Optimizers>
void Accelerator::unscale_gradients(const Optimizers&... optimizers) {
  unscale_only({optimizers...});
}

template <Module M>
void Accelerator::save_model(const M& model, const std::filesystem::path& dir, const SaveModelOptions& options) {
  save_module(detail::module_of(model), dir, options);
}

template <Module M>
void Accelerator::load_checkpoint_in_model(M& model, const std::filesystem::path& checkpoint,
                                           const LoadWeightsOptions& options) {
  load_into(detail::module_of(model), checkpoint, options);
}

template <Checkpointable T>
void Accelerator::register_for_checkpointing(const std::string& name, T& object) {
  register_object(
      name, [&object](StateWriter& out) { std::as_const(object).save(out); },
      [&object](const StateReader& in) { object.load(in); });
}

inline SummonedParameters Accelerator::summon_full_parameters(const ModelBase& model,
                                                              const SummonOptions& options) const {
  return {model, options};
}

template <Module M>
auto Accelerator::unwrap_model(const Model<M>& model) {
  return model.unwrap();
}

}  // namespace hortator
