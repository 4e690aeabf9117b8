#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <hortator/bigmodel/device_memory.hpp>
#include <hortator/bigmodel/weights.hpp>
#include <hortator/checkpoint.hpp>
#include <hortator/data.hpp>
#include <hortator/detail/built_with.hpp>
#include <hortator/detail/gathering.hpp>
#include <hortator/detail/leaves.hpp>
#include <hortator/detail/micro_batches.hpp>
#include <hortator/model.hpp>
#include <hortator/optimizer.hpp>
#include <hortator/parallel/context_parallel.hpp>
#include <hortator/parallel/data_parallel.hpp>
#include <hortator/parallel/gradient_scopes.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <hortator/parallel/zero.hpp>
#include <hortator/schedule.hpp>
#include <hortator/state.hpp>
#include <hortator/tracker.hpp>
#include <hortator/training/accelerator_options.hpp>
#include <hortator/training/accumulation.hpp>
#include <hortator/training/autocast.hpp>
#include <hortator/training/capture.hpp>
#include <hortator/training/grad_scaler.hpp>
#include <hortator/training/metrics.hpp>
#include <hortator/training/objects.hpp>
#include <hortator/training/precision.hpp>
#include <hortator/training/profile.hpp>
#include <hortator/training/progress.hpp>
#include <hortator/training/saved_object.hpp>
#include <hortator/training/state_dict.hpp>
#include <hortator/training/state_hook.hpp>
#include <hortator/training/torch_schedule.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace hortator {

namespace accelerator {
class Training;
}

/// One training run over all ranks. Owns the communicators and everything that prepare() made. Destruction gives
/// divided parameters back; handles that outlive it throw. Construction is @collective.
class HORTATOR_API Accelerator : public State {
 public:
  /// Leave `built` to its default: see hortator::run.
  explicit Accelerator(const AcceleratorOptions& options = {}, const BuiltWith& built = {});
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  const AcceleratorOptions& options() const;

  /// Makes models, optimizers, loaders and schedules work over all ranks, in any number and order, and returns their
  /// prepared handles: `auto [model, optimizer, loader] = accelerator.prepare(net, adam, data_loader(...));`. Rank 0's
  /// parameters and buffers go to all. Modules in holders and shared pointers are kept until free_memory(); plain
  /// modules, optimizers and torch::optim's schedulers must outlive the training. @collective
  template <typename... Objects>
  auto prepare(Objects&&... objects);
  /// Prepares one model or loader, with options of its own. @collective
  template <typename M>
  requires Module<std::remove_cvref_t<M>>
  auto prepare_model(M&& module, const PrepareModelOptions& chosen = {});
  template <std::derived_from<LoaderBase> Loader>
  Loader prepare_data_loader(Loader loader, const PrepareDataLoaderOptions& chosen = {});

  /// Runs the backward pass of loss / gradient_accumulation_steps; afterwards every gradient is the mean over all
  /// ranks, unless this micro-step only accumulates. The loss must reach the same prepared models on all ranks.
  /// @collective
  void backward(const at::Tensor& loss, const BackwardOptions& options = {});
  /// Runs the backward pass of a loss that is a sum over `count` tokens or samples (one number, also on a device): the
  /// gradient is that of the sum over all micro-steps and ranks, divided by the sum of all counts. @collective
  void backward(const at::Tensor& loss_sum, const at::Tensor& count, const BackwardOptions& options = {});
  void backward(const at::Tensor& loss_sum, double count, const BackwardOptions& options = {});

  /// Forward and backward of a batch in micro-batches, through the stages of a model whose layers are on several ranks
  /// (AcceleratorOptions::parallel.pipeline), in place of model() and backward(). `loss_function(model, part)` computes
  /// the loss of a part of the batch; PipelineStepOptions describes both. Returns the mean loss of the whole batch,
  /// without history, on all stages. If a stage throws, all do. @collective
  template <Module M, typename Batch, typename LossFunction>
  at::Tensor pipeline_step(Model<M>& model, const Batch& batch, LossFunction&& loss_function,
                           const PipelineStepOptions& options = {});
  /// Forward only: returns on all its ranks what the function returns for the parts, joined. @collective
  template <Module M, typename Batch, typename Function>
  at::Tensor pipeline_forward(Model<M>& model, const Batch& batch, Function&& function,
                              const PipelineStepOptions& options = {});

  /// Returns the function `step` as one that a CUDA device records and replays at a fraction of the host's time.
  /// CapturedStep describes what the function may do. A step that cannot be recorded runs as written; the log says why.
  template <typename Step>
  [[nodiscard]] CapturedStep capture(Step step, const CaptureOptions& options = {});

  /// Accumulates gradients: put it first in the loop's body. Gradients of these models add up on their rank until the
  /// last of gradient_accumulation_steps micro-steps, or the loader's last batch, averages them. Until then, prepared
  /// optimizers and schedules do nothing in step().
  template <std::derived_from<ModelBase>... Models>
  [[nodiscard]] MicroStep accumulate(const Models&... models);
  /// Whether this micro-step averages gradients and optimizers step. True until the first accumulate().
  bool sync_gradients() const;
  void set_sync_gradients(bool sync);
  std::int64_t gradient_accumulation_steps() const;
  void set_gradient_accumulation_steps(std::int64_t steps);  ///< also within a group
  /// Lets backward average after forwards under no_sync, as long as the returned scope lives.
  template <std::derived_from<ModelBase>... Models>
  requires(sizeof...(Models) > 0) [[nodiscard]] SyncInBackward trigger_sync_in_backward(const Models&... models) const;

  /// Keeps gradients of these models on their rank, where they add up, as long as the returned scope lives. The first
  /// backward after it averages the sum. For a parameter of two models, the model that was prepared first decides.
  template <std::derived_from<ModelBase>... Models>
  requires(sizeof...(Models) > 0) [[nodiscard]] NoSync no_sync(const Models&... models) const;
  /// Lets ranks have different numbers of batches as long as the returned scope lives. Does nothing while batches are
  /// even (DataOptions::even_batches, unless given here). @collective, also its end
  [[nodiscard]] JoinUnevenInputs join_uneven_inputs(std::vector<ModelBase> models, const JoinOptions& options = {});
  /// Divides sequences over the ranks along the mesh's axis context, as long as the returned scope lives: put it in the
  /// loop's body, around forward and backward (ContextParallel). @collective over the ranks along context
  [[nodiscard]] ContextParallel maybe_context_parallel(std::vector<SequenceBuffer> buffers) const;
  Precision mixed_precision() const;
  /// As long as the returned scope lives, this thread computes as prepared models do, in mixed_precision().
  [[nodiscard]] Autocast autocast() const;  ///< with AcceleratorOptions::autocast
  [[nodiscard]] Autocast autocast(const AutocastOptions& options) const;
  /// The factor by which losses are multiplied with Precision::fp16; 1 with another precision.
  LossScale loss_scale() const;

  /// With Precision::fp16, divides the gradients of prepared optimizers by their scale before their steps do.
  void unscale_gradients();
  template <std::same_as<Optimizer>... Optimizers>
  void unscale_gradients(const Optimizers&... optimizers);
  /// Scales the gradients of `parameters` down together, so that their norm of type `norm_type` (2, 1, infinity, ...)
  /// is at most `max_norm`. Returns the norm before, unscaled, as a tensor on their device that the host does not wait
  /// for. In a micro-step that only accumulates it clips this rank's sum.
  at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2,
                             const ClipOptions& options = {});
  /// Clamps each number of the gradients to [-clip_value, clip_value].
  void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);
  /// Whether the last step of any prepared optimizer was skipped because gradients had overflowed.
  bool optimizer_step_was_skipped() const;
  /// How often protection with OnNonfinite::rollback has returned to an earlier update.
  std::int64_t rollbacks() const;

  /// Copies rank 0's random number states to all ranks: those of the CPU and of device(), or those of `generators`.
  /// Without it, each rank draws its own numbers (dropout) as seeded by set_seed. @collective
  void synchronize_rng_states(const std::vector<at::Generator>& generators = {});
  /// Records operators and collectives as long as the returned scope lives, then writes a Chrome trace. @collective
  [[nodiscard]] Profile profile(const ProfileOptions& options = {});
  /// The memory of this rank's device that is in use; all zero on the CPU.
  DeviceMemory device_memory() const;
  /// The seconds that this rank has spent so far on averaging gradients and sharing buffers, over all prepared models.
  GradientTimes gradient_times() const;

  /// Returns `batches` as a range that shows a progress bar while you loop over it, on the first rank of each node.
  template <typename Batches>
  auto progress(Batches&& batches, std::string_view title = "");
  /// Gives numbers to the trackers and shows them beside the progress bar: accelerator.log({{"loss", loss}}, step). The
  /// default step is the one after the last. Tensors on a device are read at the next call, so that nothing waits for
  /// them. Only the main process's numbers are kept. Rows of a device also have its memory in use and its peak.
  void log(std::initializer_list<std::pair<std::string, Loggable>> values, std::optional<std::int64_t> step = {});
  void log(const std::vector<std::pair<std::string, Loggable>>& values, std::optional<std::int64_t> step = {});
  /// The same with the reduction of each number over the ranks, in one collective; all give the same names in the same
  /// order, and nothing waits for a device. @collective
  void log(std::initializer_list<std::pair<std::string, Loggable>> values, Reduce over_ranks,
           std::optional<std::int64_t> step = {});
  void log(const std::vector<std::pair<std::string, Loggable>>& values, Reduce over_ranks,
           std::optional<std::int64_t> step = {});
  /// Gives the run a name ("metrics" without it) and its settings. After load_state(), rows that were logged after the
  /// checkpoint are removed. A run that starts from scratch starts with empty files (older ones are kept as NAME.old).
  /// @collective
  void init_trackers(const std::string& name, const TrackerConfig& config = {});
  /// The tracker of that name, for text, histograms and images; it ignores all but the main process.
  Tracker& get_tracker(const std::string& name);

  /// Returns the ranks' tensors of one shape, joined along dimension 0 in rank order; single numbers become a vector.
  /// Here and below, a structure of tensors (hortator::TensorStructure) gives one of the same type, and of ranks that
  /// compute the same batches (along the mesh's axes tensor and context) one counts. @collective
  at::Tensor gather(const at::Tensor& tensor);
  template <typename T>
  T gather(T structure);
  /// Gathers without the samples that were added to even out the last batches: the results are exactly the data set's.
  /// Several values give a tuple; a vector of objects other than tensors is gathered as by gather_object(). @collective
  at::Tensor gather_for_metrics(const at::Tensor& tensor);
  template <typename T>
  T gather_for_metrics(const T& structure_or_objects);
  template <typename... Values>
  requires(sizeof...(Values) > 1) std::tuple<Values...> gather_for_metrics(const Values&... values);
  /// Gathers on the main process only. The ranks' tensors may differ in size along dimension 0. @collective
  template <typename T>
  std::optional<T> gather_to_main(const T& tensors_or_objects);
  template <typename T>
  std::optional<T> gather_for_metrics_to_main(const T& tensors_or_objects);
  /// Returns the reduction over the ranks, times `scale`, as a new tensor. Whole numbers take no scale. @collective
  at::Tensor reduce(const at::Tensor& tensor, Reduce operation = Reduce::sum, double scale = 1);
  template <typename T>
  T reduce(T structure, Reduce operation = Reduce::sum, double scale = 1);
  /// Returns one metric (hortator::Mergeable) that has counted what those of all ranks have. @collective
  template <Mergeable Metric>
  Metric merge(const Metric& metric) const;
  /// Overwrites `tensor` with that of `from_process`, in place, and returns it. @collective
  at::Tensor broadcast(at::Tensor tensor, int from_process = 0);
  template <typename T>
  T broadcast(T structure, int from_process = 0);
  /// Returns the tensor padded to the largest size of all ranks along one dimension (PadOptions::dim). @collective
  at::Tensor pad_across_processes(const at::Tensor& tensor, const PadOptions& options = {});
  template <typename T>
  T pad_across_processes(T structure, const PadOptions& options = {});

  /// Returns the objects (hortator::Serializable) of all ranks on every rank, in rank order: vectors are joined to one,
  /// other objects become a vector with one element per rank. @collective
  template <typename T>
  auto gather_object(const T& object) const;
  /// Replaces `objects` by those of `from_process`, and returns them. @collective
  template <typename T>
  std::vector<T>& broadcast_object_list(std::vector<T>& objects, int from_process = 0) const;

  /// Sets a trigger for all ranks; any rank may call it at any time.
  void set_trigger();
  /// Whether any rank has set the trigger since the last call; the same answer on all ranks. @collective
  bool check_trigger();

  /// Saves models, optimizers, schedules, loader positions, random numbers and registered objects to `dir`, by default
  /// project.dir/checkpoint or, with automatic naming, project.dir/checkpoints/checkpoint_N. Returns it. @collective
  std::filesystem::path save_state(const std::filesystem::path& dir = {}, const SaveStateOptions& options = {});
  /// With CheckpointOptions::asynchronous, waits until the last checkpoint is complete; throws on all ranks why it
  /// could not be written. The Accelerator's destructor waits as well. @collective
  void wait_for_checkpoint();
  /// Restores what save_state() saved, from `dir` or from the newest good checkpoint of the project's folder and of the
  /// nodes' memory (MemoryCheckpointOptions); damaged ones are reported. `dir` may also be a folder that Hugging Face
  /// Accelerate saved: see LoadOptions. Gradients that wait for an update are dropped. UsageError within LocalSGD,
  /// join_uneven_inputs and Ema::use(). @collective
  void load_state(const std::filesystem::path& dir = {}, const LoadOptions& options = {});
  bool has_checkpoint() const;  ///< whether the project has one, good or damaged; the same on all ranks. @collective
  /// Registers a function that each save_state() or load_state() calls first, on all ranks, in the order of
  /// registration, with the checkpoint's folder (StateHook). All ranks must register as many.
  StateHookHandle register_save_state_pre_hook(StateHook hook);
  StateHookHandle register_load_state_pre_hook(StateHook hook);
  /// Writes tensors by their names to one file that Python's torch.load(weights_only=True) reads; the main process
  /// writes. Whenever the run is killed, the file is complete: the new one or the old one. @collective
  void save(const StateDict& tensors, const std::filesystem::path& file, const SaveFileOptions& options = {});
  /// The same of a SavedObject, or of what becomes one: numbers, texts, containers and maps beside tensors, nested.
  /// hortator::load() reads it as well. @collective
  template <typename T>
  requires(!std::derived_from<T, StateDict>) void save(const T& object, const std::filesystem::path& file,
                                                       const SaveFileOptions& options = {}) {
    save_object(SavedObject(object), file, options);
  }

  /// Writes the weights of a model to `dir`, for load_checkpoint_in_model, transformers and Python: one file, or
  /// several with an index, by all ranks together. Tied tensors are written once. @collective
  void save_model(const ModelBase& model, const std::filesystem::path& dir, const SaveModelOptions& options = {});
  template <Module M>
  void save_model(const M& model, const std::filesystem::path& dir, const SaveModelOptions& options = {});
  /// As hortator::load_checkpoint_in_model, on all ranks; each byte is read once over all nodes. @collective
  void load_checkpoint_in_model(const ModelBase& model, const std::filesystem::path& checkpoint,
                                const LoadWeightsOptions& options = {});
  template <Module M>
  void load_checkpoint_in_model(M& model, const std::filesystem::path& checkpoint,
                                const LoadWeightsOptions& options = {});

  /// Whether all ranks should leave: the job's time is nearly over (SIGUSR1 to any rank, SIGTERM, or a deadline: see
  /// time_left()), or Ctrl-C asks for it. Call it at a step's end, after optimizer and schedule have stepped. Becomes
  /// true on all ranks at the same step, after save_state() if there is time; a program that then returns from
  /// hortator::run's body ends with code 75. Always false within gradient accumulation and join_uneven_inputs. Also
  /// takes the checkpoints whose interval AcceleratorOptions sets. @collective
  bool should_stop();
  /// Calls save_state() if `every` has passed since the last save or the start, by rank 0's clock, and returns the
  /// folder. Call it at a step's end, as should_stop(). @collective
  std::optional<std::filesystem::path> save_state_every(std::chrono::milliseconds every);
  /// The time that the job has left, by HORTATOR_DEADLINE, Slurm or PBS. @collective
  std::optional<std::chrono::seconds> time_left();
  /// The save interval that minimises the time lost to saves and failures together, by how long saves have held up the
  /// program so far; not shorter than a checkpoint takes to complete. UsageError before the first save. @collective
  std::chrono::seconds suggested_save_interval(std::chrono::seconds between_failures);

  /// Saves and restores `object`, which is borrowed, with every checkpoint, under `name`. Its tensors must be the same
  /// on all ranks; its numbers and strings are saved for each rank.
  template <Checkpointable T>
  void register_for_checkpointing(const std::string& name, T& object);

  template <Module M>
  static auto unwrap_model(const Model<M>& model);
  /// Copies the model's parameters and buffers, by name, to the main process's memory. @collective at ZeRO's stage 3
  StateDict get_state_dict(const ModelBase& model, const StateDictOptions& options = {}) const;
  /// Gives all ranks whole parameters, to read and write, while the scope lives. @collective, also its end
  [[nodiscard]] SummonedParameters summon_full_parameters(const ModelBase& model,
                                                          const SummonOptions& options = {}) const;
  static torch::optim::Optimizer& unwrap_optimizer(const Optimizer& optimizer) { return optimizer.unwrap(); }

  /// Forgets everything that was prepared, so that its memory can be freed; handles throw afterwards. Where they were
  /// divided, modules and optimizers get whole parameters back, and optimizers their whole state, which is lost without
  /// this call. Gradients are dropped. UsageError within LocalSGD, join_uneven_inputs and Ema::use(). @collective
  void free_memory();
  /// Ends the run: writes the last checkpoint and numbers, and waits for all ranks. @collective
  void end_training();

  const std::filesystem::path& project_dir() const;

 private:
  friend class accelerator::Training;  // for this library's other sources, by Training::of()

  using TorchOptimizers = std::vector<torch::optim::Optimizer*>;
  template <typename T>
  auto prepare_one(T&& object, const TorchOptimizers& beside);
  bool begin_micro_step();
  CapturedStep make_captured(CapturedStep::Step step, const CaptureOptions& options);
  std::shared_ptr<step::ModelCore> make_model(torch::nn::Module& module, const PrepareModelOptions& chosen);
  std::shared_ptr<step::OptimizerCore> make_optimizer(torch::optim::Optimizer& optimizer, bool inherits_save);
  void save_object(const SavedObject& object, const std::filesystem::path& file, const SaveFileOptions& options);
  void save_file(const std::filesystem::path& file, const SaveFileOptions& options, const std::function<void()>& write);
  void attach(const LoaderBase& loader, const PrepareDataLoaderOptions& chosen);
  void attach(const ScheduleBase& schedule);
  /// Finds the optimizer of torch's scheduler among the prepared ones and those `beside` it in the same call.
  TorchSchedule attach(torch::optim::LRScheduler& scheduler, const TorchOptimizers& beside);
  void announce_once();
  at::Tensor run_pipeline(const ModelBase& model, const detail::MicroBatches& batches,
                          const PipelineStepOptions& options);
  at::Tensor run_pipeline_forward(const ModelBase& model, const detail::MicroBatches& batches,
                                  const PipelineStepOptions& options);
  void save_module(const torch::nn::Module& module, const std::filesystem::path& dir, const SaveModelOptions& options);
  void load_into(torch::nn::Module& module, const std::filesystem::path& checkpoint, const LoadWeightsOptions& options);
  void estimate_if_asked(const std::vector<const torch::nn::Module*>& modules) const;
  void unscale_only(const std::vector<Optimizer>& optimizers);
  void register_object(const std::string& name, std::function<void(StateWriter&)> save,
                       std::function<void(const StateReader&)> load);
  ProgressSink& progress_sink();

  void gather_leaves(const std::vector<detail::Leaf>& leaves);
  void reduce_leaves(const std::vector<detail::Leaf>& leaves, Reduce operation, double scale);
  void broadcast_leaves(const std::vector<detail::Leaf>& leaves, int from_process);
  void pad_leaves(const std::vector<detail::Leaf>& leaves, const PadOptions& options);
  std::vector<std::string> gather_encoded(const std::function<std::string()>& encode) const;
  std::vector<std::string> gather_encoded(const std::function<std::string()>& encode,
                                          const detail::Gathering& how) const;
  std::string broadcast_encoded(const std::function<std::string()>& encode, int from_process) const;
  void decode_together(const std::function<void()>& decode) const;
  void decode_together(const std::function<void()>& decode, const detail::Gathering& how) const;
  detail::Gathering gathering_for_metrics() const;
  void gather_leaves(const std::vector<detail::Leaf>& leaves, const detail::Gathering& how);
  template <typename T>
  std::optional<T> gather_as(const T& value, const detail::Gathering& how);

  std::unique_ptr<accelerator::Training> training_;
};

}  // namespace hortator

#include <hortator/detail/gather.hpp>
#include <hortator/detail/pipeline.hpp>
#include <hortator/detail/prepare.hpp>
#include <hortator/detail/prepared.hpp>
