#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <hortator/data.hpp>
#include <hortator/data_parallel.hpp>
#include <hortator/detail/leaves.hpp>
#include <hortator/gradient_scopes.hpp>
#include <hortator/model.hpp>
#include <hortator/objects.hpp>
#include <hortator/optimizer.hpp>
#include <hortator/progress.hpp>
#include <hortator/schedule.hpp>
#include <hortator/state.hpp>
#include <hortator/state_dict.hpp>
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

enum class Reduce { sum, mean, max, min, product };

/// How batches are dealt to ranks; the reference's DataLoaderConfiguration.
struct DataOptions {
  bool split_batches = false;  ///< batch_size is of all ranks together, not of each
  bool even_batches = true;    ///< the last batches are filled up from the first samples, so that all ranks see as many
  std::optional<std::uint64_t> seed = {};  ///< of the shuffled order; by default set_seed's
};

struct ProjectOptions {
  std::filesystem::path dir = {};  ///< where the run's files go; default: runs/<program>
  bool automatic_checkpoint_naming =
      false;  ///< checkpoints/checkpoint_0, _1, ... in place of one checkpoint that is replaced
};

struct AcceleratorOptions {
  bool cpu = false;              ///< stay on the CPU, also where there are GPUs
  bool device_placement = true;  ///< prepare() moves models, loaders move batches, to device()
  DataOptions data = {};
  DistributedDataParallelOptions ddp = {};
  ScheduleStep schedule_step = ScheduleStep::per_process;
  ProjectOptions project = {};
  std::optional<int> communicator =
      {};  ///< ranks to work with in place of MPI_COMM_WORLD, as a Fortran handle (MPI_Comm_c2f)
  std::optional<std::chrono::milliseconds> collective_timeout =
      {};  ///< how long a collective may last before the job is ended: see StateOptions
};

struct PadOptions {
  std::int64_t dim = 0;
  double pad_index = 0;
  bool pad_first = false;
};

/// One training run over all ranks. Owns the communication and everything that prepare() made; touches none of the
/// user's objects when it goes. Handles that outlive it throw. Construction is @collective.
class HORTATOR_API Accelerator : public State {
 public:
  explicit Accelerator(const AcceleratorOptions& options = {});
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  const AcceleratorOptions& options() const;

  /// Makes models, optimizers, loaders and schedules work over all ranks, in any number and order, and returns their
  /// prepared handles in the same order: `auto [model, optimizer, loader] = accelerator.prepare(net, adam,
  /// data_loader(...));` Parameters and buffers become rank 0's. What is prepared already is returned as it is.
  /// @collective
  template <typename... Objects>
  auto prepare(Objects&&... objects);

  /// The backward pass; afterwards every gradient is the mean over all ranks. @collective
  void backward(const at::Tensor& loss);
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
  /// What keeping the ranks' models together has cost this rank so far, over all prepared models.
  GradientTimes gradient_times() const;

  /// Runs the loop's body over `loader` with one progress bar: on the first rank of each machine, plain lines where
  /// there is no terminal.
  template <typename Batches>
  auto progress(Batches&& batches, std::string_view title = "");
  /// Numbers to show beside the bar and in the log: accelerator.log({{"loss", loss}}).
  void log(std::initializer_list<std::pair<std::string, Loggable>> values);

  /// The ranks' tensors joined along dimension 0 in rank order; single numbers become a vector. Here and below, a
  /// structure of tensors (hortator::TensorStructure) gives one of the same type, with the same done to each tensor;
  /// ranks whose structures differ all throw. @collective
  at::Tensor gather(const at::Tensor& tensor);
  template <typename T>
  T gather(T structure);
  /// The same without the samples that were added to even out the last batches: exactly the data set. Several values
  /// give a tuple. A vector of objects that are no tensors is gathered as gather_object() does. @collective
  at::Tensor gather_for_metrics(const at::Tensor& tensor);
  template <typename T>
  T gather_for_metrics(const T& structure_or_objects);
  template <typename... Values>
  requires(sizeof...(Values) > 1) std::tuple<Values...> gather_for_metrics(const Values&... values);
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
  std::filesystem::path save_state(const std::filesystem::path& dir = {});
  /// Restores what save_state saved: from `dir`, or from the newest checkpoint of the default place. @collective
  void load_state(const std::filesystem::path& dir = {});
  bool has_checkpoint() const;  ///< is there one for load_state() to load? The same answer on all ranks. @collective

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
  static torch::optim::Optimizer& unwrap_optimizer(const Optimizer& optimizer) { return optimizer.unwrap(); }

  /// Forgets everything prepared, so that memory can go; handles throw afterwards. @collective
  void free_memory();
  /// Ends the run: progress bars are closed and all ranks have arrived. @collective
  void end_training();

  const std::filesystem::path& project_dir() const;

  accelerator::Training& training() const { return *training_; }

 private:
  template <typename T>
  auto prepare_one(T&& object);
  std::shared_ptr<train::ModelCore> make_model(torch::nn::Module& module);
  std::shared_ptr<train::OptimizerCore> make_optimizer(torch::optim::Optimizer& optimizer);
  void attach(const LoaderBase& loader);
  void attach(const Schedule& schedule);
  void announce_once();
  void register_object(const std::string& name, std::function<void(StateWriter&)> save,
                       std::function<void(const StateReader&)> load);
  ProgressSink& progress_sink();

  void gather_leaves(const std::vector<detail::Leaf>& leaves);
  void reduce_leaves(const std::vector<detail::Leaf>& leaves, Reduce operation);
  void broadcast_leaves(const std::vector<detail::Leaf>& leaves, int from_process);
  void pad_leaves(const std::vector<detail::Leaf>& leaves, const PadOptions& options);
  std::vector<std::string> gather_encoded(const std::function<std::string()>& encode) const;
  std::string broadcast_encoded(const std::function<std::string()>& encode, int from_process) const;
  void decode_together(const std::function<void()>& decode) const;
  std::optional<std::int64_t> samples_of_step() const;  ///< of all ranks, where the last step repeats some
  at::Tensor without_repetitions(const at::Tensor& gathered) const;

  std::unique_ptr<accelerator::Training> training_;
};

}  // namespace hortator

#include <hortator/detail/gather.hpp>
#include <hortator/detail/prepare.hpp>
