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
#include <hortator/training/state_dict.hpp>
#include <hortator/training/state_hook.hpp>
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

/// Options of Accelerator::backward().
struct BackwardOptions {
  /// Keeps what the graph has saved, so that another backward pass can go through it.
  bool retain_graph = false;
};

/// One training run over all ranks. Owns the communicators and everything that prepare() made. Destruction leaves the
/// user's objects alone, except that ZeRO gives parameters back; handles that outlive it throw. Construction is
/// @collective.
class HORTATOR_API Accelerator : public State {
 public:
  /// Leave `built` to its default: see hortator::run.
  explicit Accelerator(const AcceleratorOptions& options = {}, const BuiltWith& built = {});
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  const AcceleratorOptions& options() const;

  /// Makes models, optimizers, loaders and schedules work over all ranks, in any number and order, and returns their
  /// prepared handles in the same order: `auto [model, optimizer, loader] = accelerator.prepare(net, adam,
  /// data_loader(...));`. Broadcasts parameters and buffers from rank 0. Returns handles of objects that are already
  /// prepared unchanged. Modules in holders and shared pointers are kept until free_memory(); plain modules and
  /// optimizers are borrowed and must outlive the training. With HORTATOR_ESTIMATE=1 in the environment, prints how
  /// much memory the models need and ends the program (HORTATOR_ESTIMATE=json: as JSON). @collective
  template <typename... Objects>
  auto prepare(Objects&&... objects);
  /// Prepares one model or loader, with options of its own. @collective
  template <typename M>
  requires Module<std::remove_cvref_t<M>>
  auto prepare_model(M&& module, const PrepareModelOptions& chosen = {});
  template <std::derived_from<LoaderBase> Loader>
  Loader prepare_data_loader(Loader loader, const PrepareDataLoaderOptions& chosen = {});

  /// Runs the backward pass of loss / gradient_accumulation_steps; afterwards every gradient is the mean over all
  /// ranks, unless this micro-step only accumulates. The loss must reach the same prepared models on all ranks;
  /// otherwise all ranks throw and name the models. @collective
  void backward(const at::Tensor& loss, const BackwardOptions& options = {});
  /// Runs the backward pass of a loss that is a sum over `count` tokens or samples: the gradient is that of the sum
  /// over all micro-steps of the group and all ranks, divided by the sum of all counts, however unequal they are.
  /// `count` is one number, which may be on the device. If all counts are 0, gradients are zero. @collective
  void backward(const at::Tensor& loss_sum, const at::Tensor& count, const BackwardOptions& options = {});
  void backward(const at::Tensor& loss_sum, double count, const BackwardOptions& options = {});

  /// Forward and backward of a batch in micro-batches, through the stages of a model whose layers are on several ranks
  /// (AcceleratorOptions::parallel.pipeline); on one rank, one micro-batch after the other. In place of model() and
  /// backward():
  ///
  ///     auto loss = accelerator.pipeline_step(model, batch, [&](auto& model, auto& part) {
  ///       return torch::cross_entropy_loss(model(part.data), part.target);
  ///     });
  ///
  /// The function computes the mean loss of a part of the batch, or a pair of a sum and its count as backward() takes
  /// them. It runs on every stage up to the call of the model, which it calls once, and to its end on the last stage
  /// only: all ranks along the pipeline get the same batch. The tensors of `batch` (one, or a structure of tensors) are
  /// cut along dimension 0. Returns the mean loss of the whole batch, without history, on all stages. If a stage
  /// throws, all do. @collective
  template <Module M, typename Batch, typename LossFunction>
  at::Tensor pipeline_step(Model<M>& model, const Batch& batch, LossFunction&& loss_function,
                           const PipelineStepOptions& options = {});
  /// Forward only, without gradients: returns the tensors that the function returns for the parts, joined along
  /// dimension 0, on all ranks along the pipeline. @collective
  template <Module M, typename Batch, typename Function>
  at::Tensor pipeline_forward(Model<M>& model, const Batch& batch, Function&& function,
                              const PipelineStepOptions& options = {});

  /// Returns the function `step` as one that a CUDA device records and replays at a fraction of the host's time:
  /// `auto step = accelerator.capture([&](const at::Tensor& data, const at::Tensor& target) {...; return loss; });`
  /// then in the loop `auto loss = step(batch.data, batch.target);`. CapturedStep describes what the function may do. A
  /// step that cannot be recorded runs as written, and the log reports why.
  template <typename Step>
  [[nodiscard]] CapturedStep capture(Step step, const CaptureOptions& options = {});

  /// Accumulates gradients: put `auto micro_step = accelerator.accumulate(model);` first in the loop's body. Gradients
  /// of these models add up on their rank until the last of gradient_accumulation_steps micro-steps, or the loader's
  /// last batch, averages them. Until then, prepared optimizers and schedules do nothing in step().
  template <std::derived_from<ModelBase>... Models>
  [[nodiscard]] MicroStep accumulate(const Models&... models);
  /// Whether this micro-step averages gradients and optimizers step. True until the first accumulate().
  bool sync_gradients() const;
  void set_sync_gradients(bool sync);
  std::int64_t gradient_accumulation_steps() const;
  void set_gradient_accumulation_steps(std::int64_t steps);  ///< also within a group
  /// Lets backward average although no_sync is in force, as long as the returned scope lives: `auto sync =
  /// accelerator.trigger_sync_in_backward(model);`, for a backward that comes after forwards under no_sync.
  template <std::derived_from<ModelBase>... Models>
  requires(sizeof...(Models) > 0) [[nodiscard]] SyncInBackward trigger_sync_in_backward(const Models&... models) const;

  /// Keeps gradients of these models on their rank, where they add up, as long as the returned scope lives: `auto local
  /// = accelerator.no_sync(model);`. The first backward after it averages the sum. For a parameter that two models
  /// share, the model that was prepared first decides.
  template <std::derived_from<ModelBase>... Models>
  requires(sizeof...(Models) > 0) [[nodiscard]] NoSync no_sync(const Models&... models) const;
  /// Lets ranks have different numbers of batches as long as the returned scope lives: `auto joined =
  /// accelerator.join_uneven_inputs({model}, {.even_batches = false});`. Does nothing while batches are even
  /// (DataOptions::even_batches, unless given here). @collective, also its end
  [[nodiscard]] JoinUnevenInputs join_uneven_inputs(std::vector<ModelBase> models, const JoinOptions& options = {});
  /// Divides sequences over the ranks along the mesh's axis context (AcceleratorOptions::parallel), as long as the
  /// returned scope lives: `auto divided = accelerator.maybe_context_parallel({{&batch.ids, 1}, {&batch.targets,
  /// 1}});`. Put it in the loop's body, around forward and backward. Each buffer is cut along its dimension, in place,
  /// and is whole again afterwards; this rank's part is one chunk of the first and one of the second half, so that
  /// causal attention is the same work on all ranks. Every scaled_dot_product_attention in between sees the keys of all
  /// ranks, in the order of the whole sequence: with is_causal, with a mask of the keys ([batch, 1, 1, tokens of this
  /// rank]), or with one whose last size is that of the whole sequence. Other masks are errors. Make targets before,
  /// since a token's next one may belong to another rank. Models of hortator::models know the positions of their
  /// tokens; pass others position_ids, as a buffer or from ContextParallel::positions(). Gradients are means over data
  /// and context: give backward() sums and counts where ranks count different numbers of tokens. Without that axis
  /// nothing happens.
  /// @collective over the ranks along context
  [[nodiscard]] ContextParallel maybe_context_parallel(std::vector<SequenceBuffer> buffers) const;
  Precision mixed_precision() const;
  /// Lets this thread compute in the type of mixed_precision(), on device(), as long as the returned scope lives: `auto
  /// mixed = accelerator.autocast();`. Prepared models do so automatically; use it for computations outside of them.
  [[nodiscard]] Autocast autocast() const;  ///< with AcceleratorOptions::autocast
  [[nodiscard]] Autocast autocast(const AutocastOptions& options) const;
  /// The factor by which losses are multiplied with Precision::fp16 (with GradScalerOptions::late_verdict, that of one
  /// step ago); 1 with another precision.
  LossScale loss_scale() const;

  /// With Precision::fp16, divides gradients by the scale of their loss before the optimizer's step does, so that you
  /// can read or change them. Further calls in the same step do nothing. Gradients of parameters that belong to no
  /// prepared optimizer stay scaled.
  void unscale_gradients();
  template <std::same_as<Optimizer>... Optimizers>
  void unscale_gradients(const Optimizers&... optimizers);
  /// Scales the gradients of `parameters` down together, so that their norm of type `norm_type` (2, 1, infinity, ...)
  /// is at most `max_norm`. Returns the norm before clipping, unscaled, as a tensor on their device; the host does not
  /// wait for it. In a micro-step that only accumulates it clips this rank's sum: check sync_gradients() first.
  at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2,
                             const ClipOptions& options = {});
  /// Clamps each number of the gradients to [-clip_value, clip_value].
  void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);
  /// Whether the last step of any prepared optimizer was skipped because gradients had overflowed (with
  /// GradScalerOptions::late_verdict, the step before it).
  bool optimizer_step_was_skipped() const;
  /// How often protection with OnNonfinite::rollback has returned to an earlier update.
  std::int64_t rollbacks() const;

  /// Copies rank 0's random number states to all ranks: those of the CPU and of device(), or those of `generators`.
  /// Without it, each rank draws its own numbers (dropout) as seeded by set_seed. The order of data does not depend on
  /// it. @collective
  void synchronize_rng_states(const std::vector<at::Generator>& generators = {});
  /// Records this thread's operators, their backward and collectives as long as the returned scope lives, then writes a
  /// Chrome trace on each rank: `auto profile = accelerator.profile({.output_trace_dir = "trace"});`. @collective
  [[nodiscard]] Profile profile(const ProfileOptions& options = {});
  /// The memory of this rank's device that is in use; all zero on the CPU. progress() and `hortator watch` show it
  /// automatically.
  DeviceMemory device_memory() const;
  /// The seconds that this rank has spent so far on averaging gradients and sharing buffers, over all prepared models.
  GradientTimes gradient_times() const;

  /// Returns `batches` as a range that shows a progress bar while you loop over it: on the first rank of each node, as
  /// plain lines where there is no terminal.
  template <typename Batches>
  auto progress(Batches&& batches, std::string_view title = "");
  /// Gives numbers to the trackers and shows them beside the progress bar: accelerator.log({{"loss", loss}, {"lr",
  /// rate}}, step). The default step is the one after the last. Tensors on a device are read at the next call, so that
  /// nothing waits for them. Only the main process's numbers are kept; the others need not call it. On a device each
  /// row also has "device_memory_gib" and "device_memory_peak_gib".
  void log(std::initializer_list<std::pair<std::string, Loggable>> values, std::optional<std::int64_t> step = {});
  void log(const std::vector<std::pair<std::string, Loggable>>& values, std::optional<std::int64_t> step = {});
  /// The same with the reduction of each number over the ranks, in one collective: accelerator.log({{"loss", loss}},
  /// Reduce::mean). All ranks give the same names in the same order; nothing waits for a device. @collective
  void log(std::initializer_list<std::pair<std::string, Loggable>> values, Reduce over_ranks,
           std::optional<std::int64_t> step = {});
  void log(const std::vector<std::pair<std::string, Loggable>>& values, Reduce over_ranks,
           std::optional<std::int64_t> step = {});
  /// Gives the run a name and its settings; without it, log() calls the run "metrics". After load_state(), rows that
  /// were logged after the checkpoint are removed and logging continues from there. A run that starts from scratch
  /// starts with empty files (older ones are kept as NAME.old). An unwritable folder is an error on all ranks.
  /// @collective
  void init_trackers(const std::string& name, const TrackerConfig& config = {});
  /// The tracker of that name, for text, histograms and images:
  /// accelerator.get_tracker("tensorboard").log_images("samples", images, step). On processes other than the main one
  /// the tracker ignores everything.
  Tracker& get_tracker(const std::string& name);

  /// Returns the ranks' tensors of one shape, joined along dimension 0 in rank order; single numbers become a vector.
  /// Here and below, a structure of tensors (hortator::TensorStructure) gives one of the same type, with the same done
  /// to each tensor; if structures differ between ranks, all throw. Here and below, of ranks that compute the same
  /// batches (along the mesh's axes tensor and context) one counts, so that no row is repeated. @collective
  at::Tensor gather(const at::Tensor& tensor);
  template <typename T>
  T gather(T structure);
  /// Gathers without the samples that were added to even out the last batches: the results are exactly the data set's.
  /// Several values give a tuple. A vector of objects other than tensors is gathered as by gather_object(). If batches
  /// are not evened out, ranks without a batch in this iteration are not waited for. @collective
  at::Tensor gather_for_metrics(const at::Tensor& tensor);
  template <typename T>
  T gather_for_metrics(const T& structure_or_objects);
  template <typename... Values>
  requires(sizeof...(Values) > 1) std::tuple<Values...> gather_for_metrics(const Values&... values);
  /// Gathers on the main process only; returns nothing on the others, which saves their memory. The ranks' tensors may
  /// differ in size along dimension 0. @collective
  template <typename T>
  std::optional<T> gather_to_main(const T& tensors_or_objects);
  template <typename T>
  std::optional<T> gather_for_metrics_to_main(const T& tensors_or_objects);
  /// Returns the reduction over the ranks, times `scale`, as a new tensor. Whole numbers take no scale. @collective
  at::Tensor reduce(const at::Tensor& tensor, Reduce operation = Reduce::sum, double scale = 1);
  template <typename T>
  T reduce(T structure, Reduce operation = Reduce::sum, double scale = 1);
  /// Returns one metric (ClassificationCounts, Perplexity, Auroc, MovingMean, or your own with fields() of tensors and
  /// merge()) that has counted what those of all ranks have, which may be of different sizes. @collective
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

  /// Returns the objects of all ranks on every rank, in rank order: vectors are joined to one vector, other objects
  /// become a vector with one element per rank. Objects must be hortator::Serializable. @collective
  template <typename T>
  auto gather_object(const T& object) const;
  /// Replaces `objects` by those of `from_process`, in place and whatever their number, and returns them. @collective
  template <typename T>
  std::vector<T>& broadcast_object_list(std::vector<T>& objects, int from_process = 0) const;

  /// Sets a trigger for all ranks; any rank may call it at any time.
  void set_trigger();
  /// Whether any rank has set the trigger since the last call; the same answer on all ranks. @collective
  bool check_trigger();

  /// Saves models, optimizers, schedules, loader positions, random numbers and registered objects, and returns the
  /// folder: `dir`, or by default project.dir/checkpoint (replaced each time), or with automatic naming
  /// project.dir/checkpoints/checkpoint_N. @collective
  std::filesystem::path save_state(const std::filesystem::path& dir = {}, const SaveStateOptions& options = {});
  /// With CheckpointOptions::asynchronous, waits until the last checkpoint is complete; if it could not be written, all
  /// ranks throw the reason. The Accelerator's destructor waits as well, and hortator::run then ends the program with
  /// that error. @collective
  void wait_for_checkpoint();
  /// Restores what save_state() saved, from `dir` or from the newest checkpoint of the project's folder and of the
  /// nodes' memory (MemoryCheckpointOptions); there, damaged checkpoints are reported and skipped for the newest good
  /// one. `dir` may also be a folder that Hugging Face Accelerate saved:
  /// the Python run then continues here, with the same objects prepared in the same order. Models, optimizers,
  /// schedules, the scaler, registered objects and PyTorch's random numbers are loaded; for the rest (loader positions,
  /// random numbers of Python and NumPy) a warning is logged. Gradients that wait for an update are dropped. UsageError
  /// within LocalSGD, join_uneven_inputs and Ema::use(). @collective
  void load_state(const std::filesystem::path& dir = {}, const LoadOptions& options = {});
  bool has_checkpoint() const;  ///< whether the project has one, good or damaged; the same on all ranks. @collective
  /// Registers a function that each save_state() or load_state() calls first, on all ranks, in the order of
  /// registration, with the checkpoint's folder for files of the program: what a hook writes there is saved, and there
  /// for the hooks of a load. If a hook throws on one rank, the save or load ends on all. A function that takes a
  /// StateHookScope gets the models as well, and may leave some out. All ranks must register as many.
  StateHookHandle register_save_state_pre_hook(StateHook hook);
  StateHookHandle register_load_state_pre_hook(StateHook hook);
  /// Writes tensors by their names to one file that Python's torch.load(weights_only=True) reads; the main process
  /// writes. Whenever the run is killed, the file is complete: the new one or the old one. If it cannot be written, all
  /// ranks throw. @collective
  void save(const StateDict& tensors, const std::filesystem::path& file, const SaveFileOptions& options = {});

  /// Writes the weights of a model to `dir`, for load_checkpoint_in_model, transformers and Python: one file, or
  /// several with an index, by all ranks together. Weights of an earlier save are replaced; other files in `dir` stay.
  /// Tied tensors are written once, under the first of their names. @collective
  void save_model(const ModelBase& model, const std::filesystem::path& dir, const SaveModelOptions& options = {});
  template <Module M>
  void save_model(const M& model, const std::filesystem::path& dir, const SaveModelOptions& options = {});
  /// Loads weights as hortator::load_checkpoint_in_model does, on all ranks; if it fails on one, all throw. Each byte
  /// is read once over all nodes, which send it to each other. @collective
  void load_checkpoint_in_model(const ModelBase& model, const std::filesystem::path& checkpoint,
                                const LoadWeightsOptions& options = {});
  template <Module M>
  void load_checkpoint_in_model(M& model, const std::filesystem::path& checkpoint,
                                const LoadWeightsOptions& options = {});

  /// Whether all ranks should leave: the job's time is nearly over (SIGUSR1 to any rank, SIGTERM, or a deadline: see
  /// time_left()), or Ctrl-C asks for it (SIGINT). Call it at a step's end, after optimizer and schedule have stepped.
  /// Becomes true on all ranks at the same step, after the run was saved by save_state() unless SIGKILL would come
  /// first. A program that then returns from hortator::run's body ends with code 75. Always false within gradient
  /// accumulation and join_uneven_inputs. Also takes the checkpoints of AcceleratorOptions::memory_checkpoint.
  ///
  /// The ranks' agreement travels with the gradients; a step without averaged gradients costs one reduction of three
  /// bytes. @collective
  bool should_stop();
  /// Calls save_state() if `every` has passed since the last save, or since the start, by rank 0's clock; returns the
  /// folder if it has saved. Call it at a step's end, as should_stop(). @collective
  std::optional<std::filesystem::path> save_state_every(std::chrono::milliseconds every);
  /// The time that the job has left: until HORTATOR_DEADLINE (seconds since 1970), or as Slurm or PBS reports it, which
  /// rank 0 asks at most every ten minutes. Nothing if there is no limit. @collective
  std::optional<std::chrono::seconds> time_left();
  /// The save interval that minimises the time lost to saves and failures together, computed from how long saves have
  /// held up the program so far and the mean time `between_failures`; not shorter than a checkpoint takes to complete.
  /// UsageError before the first save. @collective
  std::chrono::seconds suggested_save_interval(std::chrono::seconds between_failures);

  /// Saves and restores `object` with every checkpoint, under `name`. The object is borrowed. Its tensors must be the
  /// same on all ranks and are saved once; its numbers and strings are saved for each rank (loaded by another number of
  /// ranks, all get rank 0's).
  template <Checkpointable T>
  void register_for_checkpointing(const std::string& name, T& object);

  template <Module M>
  static auto unwrap_model(const Model<M>& model);
  /// Copies the model's parameters and buffers, by their names, to host memory: on the main process all of them, on the
  /// others none. @collective at ZeRO's stage 3
  StateDict get_state_dict(const ModelBase& model, const StateDictOptions& options = {}) const;
  /// Gives every rank whole parameters, to read and write at any ZeRO stage, as long as the returned scope lives: `auto
  /// full = accelerator.summon_full_parameters(model);`. @collective, also its end
  [[nodiscard]] SummonedParameters summon_full_parameters(const ModelBase& model,
                                                          const SummonOptions& options = {}) const;
  static torch::optim::Optimizer& unwrap_optimizer(const Optimizer& optimizer) { return optimizer.unwrap(); }

  /// Forgets everything that was prepared, so that its memory can be freed; handles throw afterwards. Under ZeRO,
  /// parallel.tensor, parallel.experts and parallel.pipeline, modules and optimizers get whole parameters back, and
  /// optimizers their whole state. (Without this call that state is lost when the Accelerator is destroyed, since each
  /// rank had only its part.) Gradients are dropped. UsageError within LocalSGD, join_uneven_inputs and Ema::use().
  /// @collective
  void free_memory();
  /// Ends the run: writes the last checkpoint and the last numbers, closes progress bars and waits for all ranks.
  /// @collective
  void end_training();

  const std::filesystem::path& project_dir() const;

 private:
  friend class accelerator::Training;  // for this library's other sources, by Training::of()

  template <typename T>
  auto prepare_one(T&& object);
  bool begin_micro_step();
  CapturedStep make_captured(CapturedStep::Step step, const CaptureOptions& options);
  std::shared_ptr<step::ModelCore> make_model(torch::nn::Module& module, const PrepareModelOptions& chosen);
  std::shared_ptr<step::OptimizerCore> make_optimizer(torch::optim::Optimizer& optimizer, bool inherits_save);
  void attach(const LoaderBase& loader, const PrepareDataLoaderOptions& chosen);
  void attach(const ScheduleBase& schedule);
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
