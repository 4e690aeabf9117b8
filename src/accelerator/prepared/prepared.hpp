#pragma once

#include <cstdint>
#include <functional>
#include <hortator/data.hpp>
#include <hortator/schedule.hpp>
#include <hortator/training/objects.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accelerator/prepared/checkpoint_part.hpp"
#include "accelerator/prepared/state_hooks.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "parallel/zero/flat_parameters.hpp"
#include "step/gradients/sharded_norm.hpp"
#include "step/model/model_core.hpp"
#include "step/moments/optimizer_state.hpp"
#include "step/optimizer/optimizer_core.hpp"

namespace hortator::accelerator {

/// A user's object that is saved in checkpoints.
struct RegisteredObject {
  std::string name;
  std::function<void(StateWriter&)> save;
  std::function<void(const StateReader&)> load;
};

/// What the user has prepared and registered: the same on all ranks, in the same order.
class Prepared {
 public:
  using Models = std::vector<std::shared_ptr<step::ModelCore>>;
  using Optimizers = std::vector<std::shared_ptr<step::OptimizerCore>>;

  const Models& models() const { return models_; }
  const Optimizers& optimizers() const { return optimizers_; }
  const std::vector<LoaderBase>& loaders() const { return loaders_; }
  std::vector<LoaderBase>& loaders() { return loaders_; }
  const std::vector<ScheduleBase>& schedules() const { return schedules_; }
  std::vector<ScheduleBase>& schedules() { return schedules_; }
  const std::vector<RegisteredObject>& objects() const { return objects_; }
  const std::vector<CheckpointPart>& parts() const { return parts_; }
  StateHooks& save_hooks() { return save_hooks_; }
  StateHooks& load_hooks() { return load_hooks_; }

  /// Under ZeRO, prepared optimizers step the new model's slices of the parameters from now on.
  void add_model(std::shared_ptr<step::ModelCore> model);
  /// Under ZeRO, it steps slices of the prepared models' parameters from now on.
  void add_optimizer(std::shared_ptr<step::OptimizerCore> optimizer);
  void add_loader(const LoaderBase& loader) { loaders_.push_back(loader); }
  void add_schedule(const ScheduleBase& schedule) { schedules_.push_back(schedule); }
  /// Throws UsageError if the name is taken.
  void add_object(RegisteredObject object);
  /// Throws UsageError if there is a part of this name.
  void add_part(CheckpointPart part);
  /// Its parameters are the user's again; what it remembers of them is lost.
  void remove_optimizer(std::size_t number);

  /// The loader whose loop was entered last and still runs; null outside of loops.
  const LoaderBase* active_loader() const;
  /// Whether the optimizer's last step was skipped; of an optimizer that is not prepared, whether any prepared one's
  /// was.
  bool was_skipped(const torch::optim::Optimizer& optimizer) const;
  /// Whether some ranks may be missing from this step: they have no batches left within join_uneven_inputs.
  bool may_lack_ranks() const;
  bool any_sends_gradients() const;
  /// Whether some model's replicas may differ between ranks (LocalSGD).
  bool replicas_may_differ() const;
  /// Throws UsageError, which names `call`, within join_uneven_inputs and LocalSGD, where ranks may take different
  /// numbers of steps. Local.
  void require_together(std::string_view call) const;

  step::ParameterNames parameter_names() const;
  /// The parameters' names, also by the slices that optimizers step in place of the parameters.
  step::ParameterNames stepped_names() const;
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
  /// The parameters of all models, by their names in the module where there is one model.
  NamedTensors named_parameters() const;
  /// What optimizers step, by the same names.
  NamedTensors stepped() const;
  /// Whether it was prepared before all other optimizers.
  bool is_first(const step::OptimizerCore* optimizer) const {
    return !optimizers_.empty() && optimizers_.front().get() == optimizer;
  }
  /// The parameters of all models.
  step::TensorSet parameters() const;
  /// Those of the parameters whose gradients count in norms on this rank: without those of other stages, and those that
  /// an earlier stage has as well.
  std::vector<at::Tensor> counted(const std::vector<at::Tensor>& parameters) const;
  /// The tensors that hold the gradients of these parameters.
  step::GradientHolders gradient_holders(const std::vector<at::Tensor>& parameters) const;
  /// The size of all gradients together.
  std::int64_t gradient_bytes() const;

  /// Clears the gradients of all models' parameters.
  void clear_gradients() const;
  /// Handles throw from now on.
  void retire_models() const;
  using ReleaseMode = parallel::FlatParameters::ReleaseMode;
  /// Gives the user's modules and optimizers their parameters back. @collective where parameters are sharded, unless
  /// `mode` is local.
  void release_shards(ReleaseMode mode) const;
  /// Optimizers get back, as a whole, what they remember of sharded and divided parameters. @collective where there are
  /// some
  void give_back_optimizers() const;
  /// Cuts what optimizers remember of divided parameters as a whole down to this rank's parts. Local.
  void divide_moments() const;
  /// Forgets models, optimizers, loaders, schedules, objects and further parts of checkpoints. Hooks stay.
  void clear();

 private:
  /// The parameter among those whose gradients are sharded.
  parallel::FlatParameter find_scattered(const at::Tensor& parameter) const;
  void shard_optimizers() const;
  void forget_moments_of_parts() const;

  Models models_;
  Optimizers optimizers_;
  std::vector<LoaderBase> loaders_;
  std::vector<ScheduleBase> schedules_;
  std::vector<RegisteredObject> objects_;
  std::vector<CheckpointPart> parts_;
  StateHooks save_hooks_;
  StateHooks load_hooks_;
};

}  // namespace hortator::accelerator
