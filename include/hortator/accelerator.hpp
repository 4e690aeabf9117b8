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
#include <hortator/model.hpp>
#include <hortator/optimizer.hpp>
#include <hortator/parallel/data_parallel.hpp>
#include <hortator/parallel/gradient_scopes.hpp>
#include <hortator/parallel/zero.hpp>
#include <hortator/schedule.hpp>
#include <hortator/state.hpp>
#include <hortator/tracker.hpp>
#include <hortator/training/accelerator_options.hpp>
#include <hortator/training/accumulation.hpp>
#include <hortator/training/autocast.hpp>
#include <hortator/training/capture.hpp>
#include <hortator/training/grad_scaler.hpp>
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

/// One training run over all ranks. Owns the communication and everything that prepare() made; touches none of the
/// user's objects when it goes, but to put back what ZeRO has taken out of them. Handles that outlive it throw.
/// Construction is @collective.
class HORTATOR_API Accelerator : public State {
 public:
  /// `built` is left to its default: see hortator::run.
  explicit Accelerator(const AcceleratorOptions& options = {}, const BuiltWith& built = {});
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  const AcceleratorOptions& options() const;

  /// Makes models, optimizers, loaders and schedules work over all ranks, in any number and order, and returns their
  /// prepared handles in the same order: `auto [model, optimizer, loader] = accelerator.prepare(net, adam,
  /// data_loader(...));` Parameters and buffers become rank 0's. What is prepared already is returned as it is.
  /// With HORTATOR_ESTIMATE=1 in the environment it prints what the models take, and ends the program (json: as JSON).
  /// Modules in holders and shared pointers are kept until free_memory(); plain ones and optimizers are borrowed.
  /// @collective
  template <typename... Objects>
  auto prepare(Objects&&... objects);
  /// One of them, with options of its own. @collective
  template <typename M>
  requires Module<std::remove_cvref_t<M>>
  auto prepare_model(M&& module, const PrepareModelOptions& chosen = {});
  template <std::derived_from<LoaderBase> Loader>
  Loader prepare_data_loader(Loader loader, const PrepareDataLoaderOptions& chosen = {});

  /// The backward pass of loss / gradient_accumulation_steps; afterwards every gradient is the mean over all ranks,
  /// unless this micro-step leaves gradients where they are. A loss reaches the same prepared models on all ranks, or
  /// all throw and name them. @collective
  void backward(const at::Tensor& loss);
  /// For a loss that is a sum over `count` parts (tokens, samples): the gradient is that of the sum over all
  /// micro-steps of the group and all ranks, divided by all their counts together, however unequal they are. `count`
  /// may be a number on the device. With a count of 0 everywhere gradients are zero. @collective
  void backward(const at::Tensor& loss_sum, const at::Tensor& count);
  void backward(const at::Tensor& loss_sum, double count);

  /// `auto step = accelerator.capture([&](const at::Tensor& data, const at::Tensor& target) {...; return loss; });`
  /// then in the loop `auto loss = step(batch.data, batch.target);`. The function is a whole training step of prepared
  /// objects: forward, backward(), clip_grad_norm_(), optimizer.step(), schedule.step(), zero_grad(). On a CUDA device
  /// it is recorded after a few steps and repeated from then on as one piece, at a fraction of the host's time.
  /// Learning rates, step counts and random numbers go on as they would without; inputs of another shape than the
  /// recorded ones run as written. Whatever else the function does on the host is done while it runs as written and
  /// while it is recorded, and not again: what looks at numbers of the device (item()), or prints, belongs behind the
  /// step.
  ///
  /// Where a step cannot be recorded it runs as written, and the log says why: on the CPU, on several ranks, with
  /// Precision::fp16 unless GradScalerOptions::late_verdict is on, ZeRO, reproducible = true, gradient accumulation,
  /// and optimizers without a fused kernel.
  template <typename Step>
  [[nodiscard]] CapturedStep capture(Step step, const CaptureOptions& options = {}) {
    return make_captured(detail::step_of_inputs(std::move(step)), options);
  }

  /// Gradient accumulation: `auto micro_step = accelerator.accumulate(model);` first in the loop's body. Gradients of
  /// these models stay on their rank and add up, until the last of gradient_accumulation_steps micro-steps, or the
  /// loader's last batch, averages them. Prepared optimizers and schedules rest in between.
  template <std::derived_from<ModelBase>... Models>
  [[nodiscard]] MicroStep accumulate(const Models&... models) {
    if (begin_micro_step()) return MicroStep({});
    return MicroStep(NoSync(std::vector<ModelBase>{models...}));
  }
  /// Whether this micro-step averages gradients, and optimizers step. Also outside of accumulate: true at first.
  bool sync_gradients() const;
  void set_sync_gradients(bool sync);
  std::int64_t gradient_accumulation_steps() const;
  void set_gradient_accumulation_steps(std::int64_t steps);  ///< also within a group
  /// `auto sync = accelerator.trigger_sync_in_backward(model);`: as long as it lives, backward averages also under
  /// no_sync, for a backward that comes after forwards under no_sync.
  template <std::derived_from<ModelBase>... Models>
  requires(sizeof...(Models) > 0) [[nodiscard]] SyncInBackward trigger_sync_in_backward(const Models&... models) const {
    return SyncInBackward(std::vector<ModelBase>{models...});
  }

  /// `auto local = accelerator.no_sync(model);`: as long as `local` lives, backward leaves the gradients of these
  /// models on their rank, where they add up; the first backward after it averages the sum. With a parameter that two
  /// models share, the one that was prepared first decides.
  template <std::derived_from<ModelBase>... Models>
  requires(sizeof...(Models) > 0) [[nodiscard]] NoSync no_sync(const Models&... models) const {
    return NoSync(std::vector<ModelBase>{models...});
  }
  /// `auto joined = accelerator.join_uneven_inputs({model}, {.even_batches = false});`: as long as `joined` lives,
  /// ranks may have different numbers of batches. Nothing changes while batches are even (DataOptions::even_batches,
  /// unless given here). @collective, also its end
  [[nodiscard]] JoinUnevenInputs join_uneven_inputs(std::vector<ModelBase> models, const JoinOptions& options = {});
  Precision mixed_precision() const;
  /// `auto mixed = accelerator.autocast();`: as long as `mixed` lives, this thread computes in the type of
  /// mixed_precision(), on device(). Prepared models do so by themselves; this is for what lies outside of them.
  [[nodiscard]] Autocast autocast(const AutocastOptions& options = {}) const;
  /// With Precision::fp16: by what losses are multiplied (GradScalerOptions::late_verdict: a step ago). Otherwise 1.
  LossScale loss_scale() const;

  /// With Precision::fp16: divides gradients by the scale of their loss before the optimizer's step does, to look at
  /// them or to change them. Once a step; more often does no harm. A parameter that belongs to no prepared optimizer
  /// is not found.
  void unscale_gradients();
  template <std::same_as<Optimizer>... Optimizers>
  void unscale_gradients(const Optimizers&... optimizers) {
    unscale_only({optimizers...});
  }
  /// Scales the gradients of `parameters` down together, so that their norm is at most `max_norm`. Any norm: 2, 1,
  /// infinity, ... Returns the norm before that, unscaled, as a tensor on their device; nothing waits for it. Between
  /// synchronised passes it clips what is there: ask sync_gradients() first.
  at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2,
                             const ClipOptions& options = {});
  /// Each number of the gradients into [-clip_value, clip_value].
  void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);
  /// Whether some prepared optimizer's last step was skipped because gradients had overflowed (the one before it with
  /// GradScalerOptions::late_verdict).
  bool optimizer_step_was_skipped() const;

  /// All ranks go on with rank 0's random numbers, of the CPU and of device(), or of `generators`. Otherwise each rank
  /// draws its own (dropout) as set_seed has left it; the order of data needs none of this. @collective
  void synchronize_rng_states(const std::vector<at::Generator>& generators = {});
  /// `auto profile = accelerator.profile({.output_trace_dir = "trace"});`: as long as `profile` lives, this thread's
  /// operators, their backward and collectives are recorded; then each rank writes a Chrome trace.
  [[nodiscard]] Profile profile(const ProfileOptions& options = {});
  /// Of this rank's device, for people: progress() and `hortator watch` show it by themselves.
  DeviceMemory device_memory() const;
  /// What keeping the ranks' models together has cost this rank so far, over all prepared models.
  GradientTimes gradient_times() const;

  /// Runs the loop's body over `loader` with one progress bar: on the first rank of each machine, plain lines where
  /// there is no terminal.
  template <typename Batches>
  auto progress(Batches&& batches, std::string_view title = "");
  /// Numbers for the trackers, also shown beside the bar: accelerator.log({{"loss", loss}, {"lr", rate}}, step).
  /// Without a step, that after the last one. Those on a device are read when the next ones come: nothing waits. Only
  /// the main process's are kept; the others need not call it. On a device each row has "device_memory_gib" and
  /// "device_memory_peak_gib" besides.
  void log(std::initializer_list<std::pair<std::string, Loggable>> values, std::optional<std::int64_t> step = {});
  void log(const std::vector<std::pair<std::string, Loggable>>& values, std::optional<std::int64_t> step = {});
  /// Gives the run a name and its settings; without it, log() calls the run "metrics". A run whose state is loaded goes
  /// on where the saved one was: what was logged after that is taken out. One that begins anew begins with empty files
  /// (older ones are kept as NAME.old). An unwritable folder is an error on all ranks. @collective
  void init_trackers(const std::string& name, const TrackerConfig& config = {});
  /// The tracker of that name, for what is more than numbers:
  /// accelerator.get_tracker("tensorboard").log_images("samples", images, step). On other processes than the main one
  /// it keeps nothing.
  Tracker& get_tracker(const std::string& name);

  /// The ranks' tensors joined along dimension 0 in rank order; single numbers become a vector. Here and below, a
  /// structure of tensors (hortator::TensorStructure) gives one of the same type, with the same done to each tensor;
  /// ranks whose structures differ all throw. @collective
  at::Tensor gather(const at::Tensor& tensor);
  template <typename T>
  T gather(T structure);
  /// The same without the samples that were added to even out the last batches: exactly the data set. Several values
  /// give a tuple. A vector of objects that are no tensors is gathered as gather_object() does. Where batches are not
  /// evened out, the ranks that have none in this body of the loop are not waited for. @collective
  at::Tensor gather_for_metrics(const at::Tensor& tensor);
  template <typename T>
  T gather_for_metrics(const T& structure_or_objects);
  template <typename... Values>
  requires(sizeof...(Values) > 1) std::tuple<Values...> gather_for_metrics(const Values&... values);
  /// Both for the main process alone: nothing on the others, whose memory it spares. The ranks' tensors may differ in
  /// size along dimension 0. @collective
  template <typename T>
  std::optional<T> gather_to_main(const T& tensors_or_objects);
  template <typename T>
  std::optional<T> gather_for_metrics_to_main(const T& tensors_or_objects);
  /// A new tensor: the reduction over all ranks. @collective
  at::Tensor reduce(const at::Tensor& tensor, Reduce operation = Reduce::sum);
  template <typename T>
  T reduce(T structure, Reduce operation = Reduce::sum);
  /// `tensor` becomes that of `from_process`, in place, and is returned. @collective
  at::Tensor broadcast(at::Tensor tensor, int from_process = 0);
  template <typename T>
  T broadcast(T structure, int from_process = 0);
  /// Padded to the largest size of all ranks along one dimension. @collective
  at::Tensor pad_across_processes(const at::Tensor& tensor, const PadOptions& options = {});
  template <typename T>
  T pad_across_processes(T structure, const PadOptions& options = {});

  /// The objects of all ranks on every rank, in rank order: of vectors one vector, joined; of other objects a vector
  /// with one from each. They are hortator::Serializable. @collective
  template <typename T>
  auto gather_object(const T& object) const;
  /// `objects` become those of `from_process`, in place, however many they were, and are returned. @collective
  template <typename T>
  std::vector<T>& broadcast_object_list(std::vector<T>& objects, int from_process = 0) const;

  /// Asks all ranks to do something together, from any of them, at any time...
  void set_trigger();
  /// ...and whether one has asked: the same answer on all ranks, once. @collective
  bool check_trigger();

  /// Saves models, optimizers, schedules, loader positions, random numbers and registered objects: into `dir`, or by
  /// default into project.dir/checkpoint (replaced each time), or project.dir/checkpoints/checkpoint_N with automatic
  /// naming. Returns the folder. @collective
  std::filesystem::path save_state(const std::filesystem::path& dir = {}, const SaveStateOptions& options = {});
  /// With CheckpointOptions::asynchronous: returns when the last one saved is there, or throws on all ranks why it is
  /// not. The Accelerator's end does so as well, where hortator::run then ends the program with that error. @collective
  void wait_for_checkpoint();
  /// Restores what save_state saved: from `dir`, or from the newest checkpoint of the default place; damaged ones there
  /// are named and skipped for the newest good one. `dir` may also be a folder that Hugging Face's Accelerate saved: a
  /// Python run goes on here, with the same objects prepared in the same order. Models, optimizers, schedules, the
  /// scaler, registered objects and PyTorch's random numbers are taken over; what is not (where loaders stood, random
  /// numbers of Python and NumPy) is warned of. @collective
  void load_state(const std::filesystem::path& dir = {}, const LoadOptions& options = {});
  bool has_checkpoint() const;  ///< is there one for load_state() to load? The same answer on all ranks. @collective
  /// Called first by each save_state() or load_state(), on all ranks, in the order of registration. A hook that throws
  /// on one rank ends the save or the load on all.
  StateHookHandle register_save_state_pre_hook(StateHook hook);
  StateHookHandle register_load_state_pre_hook(StateHook hook);

  /// The weights of a model in `dir`, for load_checkpoint_in_model, transformers and Python: one file or several with
  /// an index, written by all ranks together beside what else is there; those of an earlier save are replaced. Tied
  /// tensors are written once, under the first of their names. @collective
  void save_model(const ModelBase& model, const std::filesystem::path& dir, const SaveModelOptions& options = {});
  template <Module M>
  void save_model(const M& model, const std::filesystem::path& dir, const SaveModelOptions& options = {}) {
    save_module(detail::module_of(model), dir, options);
  }
  /// hortator::load_checkpoint_in_model on all ranks; either it works on all of them, or all throw. Nodes read each
  /// byte once and send it to each other. @collective
  void load_checkpoint_in_model(const ModelBase& model, const std::filesystem::path& checkpoint,
                                const LoadWeightsOptions& options = {});
  template <Module M>
  void load_checkpoint_in_model(M& model, const std::filesystem::path& checkpoint,
                                const LoadWeightsOptions& options = {}) {
    load_into(detail::module_of(model), checkpoint, options);
  }

  /// At a step's end, after optimizer and schedule have stepped: whether all ranks are to leave, since the job's time
  /// is nearly over (SIGUSR1 to any rank, SIGTERM, or a deadline: see time_left()). True on all ranks at the same step.
  /// Before that the run is saved by save_state(), unless SIGKILL would come first. A program that then returns from
  /// hortator::run's body ends with code 75. Rests within gradient accumulation and join_uneven_inputs.
  ///
  /// The ranks' agreement rides on the gradients; a step without averaged gradients pays for a reduction of three
  /// bytes. @collective
  bool should_stop();
  /// At a step's end, as should_stop(): save_state() when so long has passed since the last one, or since the start, by
  /// rank 0's clock. Returns the folder when it has saved. @collective
  std::optional<std::filesystem::path> save_state_every(std::chrono::milliseconds every);
  /// What is left of the job's time: until HORTATOR_DEADLINE (seconds since 1970), or by Slurm's or PBS's word, which
  /// rank 0 asks for at most every ten minutes. Nothing where there is no limit. @collective
  std::optional<std::chrono::seconds> time_left();
  /// How often to save so that saving and what is lost by failures cost least together, by how long saves have held up
  /// the program so far; not more often than a checkpoint takes to be there. @collective
  std::chrono::seconds suggested_save_interval(std::chrono::seconds between_failures);

  /// Saves and restores an object of the user's with the rest. It is borrowed. Its tensors must be the same on all
  /// ranks and are kept once; numbers and texts are each rank's own (loaded by another number of ranks, all get rank
  /// 0's).
  template <Checkpointable T>
  void register_for_checkpointing(const std::string& name, T& object) {
    register_object(
        name, [&object](StateWriter& out) { std::as_const(object).save(out); },
        [&object](const StateReader& in) { object.load(in); });
  }

  template <Module M>
  static auto unwrap_model(const Model<M>& model) {
    return model.unwrap();
  }
  /// The model's parameters and buffers by their names, in host memory: everything on the main process, nothing on the
  /// others. @collective at ZeRO's stage 3
  StateDict get_state_dict(const ModelBase& model, const StateDictOptions& options = {}) const;
  /// `auto full = accelerator.summon_full_parameters(model);`: as long as `full` lives, parameters can be read and
  /// written as a whole, whatever the ZeRO stage. @collective, also its end
  [[nodiscard]] SummonedParameters summon_full_parameters(const ModelBase& model,
                                                          const SummonOptions& options = {}) const {
    return {model, options};
  }
  static torch::optim::Optimizer& unwrap_optimizer(const Optimizer& optimizer) { return optimizer.unwrap(); }

  /// Forgets everything prepared, so that memory can go; handles throw afterwards. Under ZeRO modules get parameters of
  /// their own again, and optimizers theirs with what they remember of them. (When the Accelerator ends without it,
  /// what they remember is lost: each rank had its part.) @collective
  void free_memory();
  /// Ends the run: the last checkpoint and the last numbers are written, progress bars are closed and all ranks have
  /// arrived. @collective
  void end_training();

  const std::filesystem::path& project_dir() const;

 private:
  friend class accelerator::Training;  // for this library's other sources, by Training::of()

  template <typename T>
  auto prepare_one(T&& object);
  bool begin_micro_step();
  CapturedStep make_captured(CapturedStep::Step step, const CaptureOptions& options);
  std::shared_ptr<step::ModelCore> make_model(torch::nn::Module& module, const PrepareModelOptions& chosen);
  std::shared_ptr<step::OptimizerCore> make_optimizer(torch::optim::Optimizer& optimizer);
  void attach(const LoaderBase& loader, const PrepareDataLoaderOptions& chosen);
  void attach(const ScheduleBase& schedule);
  void announce_once();
  void save_module(const torch::nn::Module& module, const std::filesystem::path& dir, const SaveModelOptions& options);
  void load_into(torch::nn::Module& module, const std::filesystem::path& checkpoint, const LoadWeightsOptions& options);
  void estimate_if_asked(const std::vector<const torch::nn::Module*>& modules) const;
  void unscale_only(const std::vector<Optimizer>& optimizers);
  void register_object(const std::string& name, std::function<void(StateWriter&)> save,
                       std::function<void(const StateReader&)> load);
  ProgressSink& progress_sink();

  void gather_leaves(const std::vector<detail::Leaf>& leaves);
  void reduce_leaves(const std::vector<detail::Leaf>& leaves, Reduce operation);
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
#include <hortator/detail/prepare.hpp>
