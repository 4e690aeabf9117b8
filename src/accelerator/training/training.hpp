#pragma once

#include <functional>
#include <hortator/accelerator.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "accelerator/state/state_hooks.hpp"
#include "accelerator/stopping/stopping.hpp"
#include "accelerator/training/memory_by_owner.hpp"
#include "accelerator/training/project.hpp"
#include "accelerator/training/reproducing.hpp"
#include "accelerator/training/run_status.hpp"
#include "accelerator/training/zero.hpp"
#include "checkpoint/write/background_save.hpp"
#include "comm/communicator.hpp"
#include "observe/progress/noted_progress.hpp"
#include "observe/trackers/trackers.hpp"
#include "parallel/batch_norm/shared_statistics.hpp"
#include "parallel/data_parallel/backward_pass.hpp"
#include "parallel/data_parallel/common_pass.hpp"
#include "runtime/world.hpp"
#include "step/accelerator_session.hpp"
#include "step/gradients/accumulation.hpp"
#include "step/gradients/loss_check.hpp"
#include "step/gradients/loss_weights.hpp"
#include "step/gradients/sharded_norm.hpp"
#include "step/model_core.hpp"
#include "step/optimizer/optimizer_core.hpp"
#include "step/optimizer/optimizer_state.hpp"
#include "step/precision/grad_scaler.hpp"

namespace hortator::accelerator {

/// An object of the user's that goes into checkpoints.
struct RegisteredObject {
  std::string name;
  std::function<void(StateWriter&)> save;
  std::function<void(const StateReader&)> load;
};

/// What the options ask for, or the environment. Throws where ranks differ. @collective
Precision agreed_precision(const AcceleratorOptions& options, const mpi::Communicator& host);

/// What one Accelerator holds: the communicators, and everything that was prepared, in that order.
class Training {
 public:
  Training(AcceleratorOptions options, runtime::World& world);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  const mpi::Communicator& host() const { return world_.comm(); }
  c10::Device device() const { return world_.device(); }
  /// The first `count` of them. @collective over these alone, the first time
  const mpi::Communicator& first_ranks(int count);
  /// Tensors travel by the back end of the device that they are on.
  comm::Communicator& communicator_of(const at::Tensor& tensor);
  comm::Communicator& device_communicator() { return on_device_ ? *on_device_ : *on_cpu_; }

  /// This rank's updates so far, also of the runs before this one.
  std::int64_t updates() const { return updates_before + status.updates(); }
  /// The run's random numbers begin with what rank 0 was seeded with last: before the first model or loader that is
  /// prepared. @collective the first time
  void settle_seed();
  std::uint64_t seed() const { return seed_.value_or(0); }
  /// A step was done, or a part of one: now and then this rank tells the run's folder how it is.
  void report_status();
  /// What will take long begins. (Runs that were too short to be told of stay so.)
  void tell(const std::string& phase);
  void tell_end();
  /// Backward, then the gradients that are still on their way. @collective
  void backward(const at::Tensor& loss);
  /// Whether the batch in the loop's body is the last before an update.
  bool sync_gradients() const;
  /// Waits for verdicts that are late: what optimizers and the scaler count is then right.
  void settle_steps() const;
  /// Whether its last step was; where it was not prepared, whether any was.
  bool was_skipped(const torch::optim::Optimizer& optimizer) const;
  /// Gradients are those of one shard of several: not to be clipped or unscaled yet.
  bool is_partial() const;
  /// Within join_uneven_inputs: ranks without batches do not come by here.
  bool may_lack_ranks() const;
  /// All ranks are here, and no gradients wait for an update: the time to save, and to leave.
  bool is_between_steps() const;
  /// What normalisation layers share, over a communicator of their own. @collective the first time
  std::shared_ptr<parallel::SharedStatistics> shared_statistics();
  /// This rank leaves the collectives of the prepared objects: comm::Communicator::abandon.
  bool abandon(std::string_view reason) noexcept;
  /// After that: forgets what was prepared, and joins the ranks anew. @collective
  void start_afresh();

  /// Finishes gradients that are still on their way. @collective
  void synchronise_gradients();
  /// Before backward: gradients that wait get the scale that those to come will have.
  void expect_scaled_gradients() const;
  /// Of a loss over all ranks, which must all come to it. @collective
  at::Tensor mean_loss(const at::Tensor& loss);
  /// What backward begins with: `loss`, scaled if there is a scaler.
  at::Tensor scaled(const at::Tensor& loss) const { return scaler ? scaler->scaled(loss) : loss; }
  void scale_gradients_of(step::OptimizerCore& optimizer) const;
  /// Those of all optimizers that have one of these parameters.
  void unscale_gradients_of(const std::vector<at::Tensor>& parameters) const;
  /// Where the gradients of these parameters are.
  step::GradientHolders gradient_holders(const std::vector<at::Tensor>& parameters) const;
  /// Optimizers step slices of the models' parameters, as far as both were prepared. With ZeRO alone
  void shard_optimizers() const;
  /// The loader whose loop was entered last and still runs; null outside of loops.
  const LoaderBase* active_loader() const;
  step::ParameterNames parameter_names() const;
  /// The same, by the tensors that optimizers have in the parameters' place.
  step::ParameterNames stepped_names() const;
  /// Of all models.
  step::TensorSet parameters() const;
  using ReleaseMode = parallel::FlatParameters::ReleaseMode;
  /// Forgets what was prepared; handles throw from now on. What an optimizer of shards remembers is lost. @collective
  /// where parameters are dealt out, unless it is done alone.
  void forget(ReleaseMode mode = ReleaseMode::collective);
  /// The same, but optimizers remember all that they did; memory goes back to the device, where others may need it.
  /// @collective
  void free_memory();

  AcceleratorOptions options;
  Precision precision;
  Project project;
  std::vector<std::size_t> file_of;  ///< of a checkpoint, for each rank; empty until the first is saved
  checkpoint::BackgroundSave background_save;
  std::shared_ptr<step::AcceleratorSession> session = std::make_shared<step::AcceleratorSession>();
  parallel::BackwardPass backward_pass;
  std::unique_ptr<parallel::CommonPass> common_pass;
  step::Accumulation accumulation;
  step::LossCheck loss_check;
  std::vector<std::shared_ptr<step::ModelCore>> models;
  step::LossWeights loss_weights;
  std::vector<std::shared_ptr<step::OptimizerCore>> optimizers;
  std::vector<LoaderBase> loaders;
  std::vector<ScheduleBase> schedules;
  std::vector<RegisteredObject> objects;
  StateHooks save_hooks;
  StateHooks load_hooks;
  Stopping stopping;
  std::unique_ptr<observe::NotedProgress> progress;
  observe::Trackers trackers;
  RunStatus status;
  std::unique_ptr<step::GradScaler> scaler;  ///< null unless losses are scaled
  std::int64_t updates_before = 0;           ///< those of the checkpoint that was loaded, less this run's until then
  bool announced = false;
  bool triggered = false;  ///< by this rank

 private:
  void connect();  ///< @collective
  void note_backward();
  void agree_on_models();  ///< @collective
  RunFacts facts();
  std::int64_t gradient_bytes() const;
  std::int64_t gradient_bytes_ = 0;  ///< as long as nobody asks 0; at the end users' modules are gone already
  void release_shards(ReleaseMode mode);
  void empty_cache() const;

  runtime::World& world_;
  std::optional<std::uint64_t> seed_;  ///< nothing until something is prepared
  std::map<int, mpi::Communicator> first_ranks_;
  std::unique_ptr<comm::Communicator> on_cpu_;
  std::unique_ptr<comm::Communicator> on_device_;                  ///< null when the device is the CPU
  std::shared_ptr<parallel::SharedStatistics> shared_statistics_;  ///< null until a model has use for them

 private:
  MemoryWatch memory_watch_{*this};

 public:
  std::unique_ptr<ZeroRanks> zero;           ///< null at stage 0
  std::unique_ptr<Reproducing> reproducing;  ///< null unless asked for
};

}  // namespace hortator::accelerator
