#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <hortator/training/autocast.hpp>
#include <hortator/training/precision.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/data_parallel/buffer_broadcast.hpp"
#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/data_parallel/gradient_reducer.hpp"
#include "parallel/pipeline/staged_module.hpp"
#include "parallel/pipeline/work/stages_of_modules.hpp"
#include "parallel/tensor/divided_module.hpp"
#include "parallel/uneven/uneven_inputs.hpp"
#include "parallel/zero/gradient_scatter.hpp"
#include "step/accelerator_session.hpp"
#include "step/model/model_hooks.hpp"
#include "step/tensor_set.hpp"

namespace hortator::step {

/// What a model communicates after prepare().
enum class ModelWork {
  training,    ///< gradients and buffers
  sharding,    ///< parameters, where they are sharded; the caller sums gradients
  evaluation,  ///< nothing
};

/// A prepared model; handles (Model) share it.
class ModelCore {
 public:
  /// What prepare() has built, each complete.
  struct Components {
    torch::nn::Module& module;
    std::string name;
    std::shared_ptr<const AcceleratorSession> session;
    const parallel::DataParallel& parallel;
    parallel::BufferBroadcast buffers;
    std::vector<parallel::NamedParameter> parameters;
    std::vector<at::Tensor> own;
    bool learns;
    std::unique_ptr<parallel::StagedModule> staged;    ///< null unless ranks have different layers
    std::unique_ptr<parallel::DividedModule> divided;  ///< null unless divided among ranks
    std::unique_ptr<parallel::ShardedModel> sharded;   ///< null unless sharded
    std::unique_ptr<parallel::GradientReducer> reducer;
    std::unique_ptr<parallel::GradientScatter> scatter;  ///< null unless gradients are sharded
  };

  /// Gives all ranks rank 0's weights, shards parameters where `parallel.sharding` asks for it, and installs the
  /// gradient hooks. Keeps `module` alive if a shared_ptr owns it, and borrows it otherwise. Gradients of `taken`
  /// parameters are averaged by a model that was prepared before. @collective
  static std::shared_ptr<ModelCore> prepare(torch::nn::Module& module, std::string name,
                                            std::shared_ptr<const AcceleratorSession> session,
                                            const parallel::DataParallel& parallel, const TensorSet& taken = {},
                                            ModelWork work = ModelWork::training);

  /// Stores what prepare() has built. Does not communicate.
  explicit ModelCore(Components components);

  torch::nn::Module& module() const { return *module_; }
  bool wraps(const torch::nn::Module& module) const { return module_ == &module; }
  /// Whether the module at the stored address is a different object (the prepared one was destroyed).
  bool is_replaced() const;
  const std::string& name() const { return name_; }
  /// The parameters that learn, without those of models that were prepared before.
  const std::vector<at::Tensor>& own_parameters() const { return own_; }
  std::vector<at::Tensor> distinct_buffers() const;
  /// Each parameter that this rank has once, including frozen ones and those of models that were prepared before.
  const std::vector<parallel::NamedParameter>& parameters() const { return parameters_; }
  parallel::FlatParameter find_sharded(const at::Tensor& parameter) const {
    return sharded_ ? sharded_->find(parameter) : parallel::FlatParameter();
  }
  /// What this rank steps of a parameter: itself, or its slice. References to slices are counted
  /// (FlatParameters::is_kept): keep a detached one.
  at::Tensor stepped(const at::Tensor& parameter) const {
    const auto found = find_sharded(parameter);
    return found ? found.slice() : parameter;
  }
  /// The parameters that are trained, without those that were frozen when their slices were made.
  std::vector<parallel::NamedParameter> stepped_parameters() const;
  /// The reducer of unsharded gradients; also holds the pause count.
  parallel::GradientReducer& reducer() { return *reducer_; }
  /// Waits until all gradients of this pass are averages, or this rank's slices of them. @collective
  void finish_gradients();
  /// GradientPass::interrupt() and drop_interrupted() of this model's pass.
  void interrupt_gradients();
  void drop_interrupted_gradients();  ///< @collective over all ranks if they were interrupted
  /// Whether a backward pass that reaches this model now averages its gradients over the ranks.
  bool sends_gradients() const { return learns_ && (scatter_ != nullptr || !reducer_->is_paused()); }
  /// The tensors whose grad() is set: parameters, or their slices.
  std::vector<at::Tensor> gradient_holders() const;
  /// How many passes have sharded their gradients.
  std::int64_t scatters() const { return scatter_ ? scatter_->passes() : 0; }
  void zero_grad();
  /// Null unless this model's parameters are sharded.
  parallel::ShardedModel* sharded() const { return sharded_.get(); }
  bool scatters_gradients() const { return scatter_ != nullptr; }
  /// Null unless this model's parameters are divided among tensor ranks, or its experts among ranks.
  parallel::DividedModule* divided() const { return divided_.get(); }
  /// Null unless ranks have different layers of this model.
  parallel::StagedModule* staged() const { return staged_.get(); }
  GradientTimes times() const;

  /// Makes autocast() compute in `precision`, on the device of the parameters.
  void compute_in(Precision precision, const AutocastOptions& options = {});
  /// The type of results; nothing: fp32 in place of 16 bits.
  std::optional<c10::ScalarType> output_type() const { return output_type_; }
  void return_in(std::optional<c10::ScalarType> type) { output_type_ = type; }
  bool is_mixed() const { return autocast_type_.has_value(); }
  /// While the result lives, this thread computes in forward's precision.
  Autocast autocast() const { return Autocast(device_type_, autocast_type_, autocast_options_); }

  ModelHooks& hooks() { return hooks_; }
  /// Sends rank 0's buffers if forward may have changed them. @collective in training mode, if gradients are averaged.
  void before_forward();
  /// Gives all ranks `root`'s buffers, unless broadcast_buffers is off. @collective
  void share_buffers(int root = 0);
  /// Gives each rank its own copy of all sharded and divided parameters, whole, until take_back_parameters(). On an
  /// error all ranks throw. If the model is divided, only the first of nested calls does anything. `choice`: of sharded
  /// parameters, those that are lent. @collective
  void lend_parameters(const parallel::FlatParameters::Choice& choice = {});
  bool is_lent() const { return lends_ > 0; }
  /// All ranks that have the model, or stages of it.
  const mpi::Communicator& all_ranks() const { return parallel_.first_weights_host(); }
  /// Ends the last lend_parameters(). What was written to the whole parameters is given to all ranks (@collective where
  /// they are sharded), or is lost. Does nothing unless they are lent.
  void take_back_parameters(bool keep_changes);
  /// Gives an optimizer what it remembers of divided parameters as a whole; null if it was destroyed. @collective
  void rejoin_moments(torch::optim::Optimizer* optimizer) const;
  /// Gives the module whole parameters that its ranks have divided, for good. @collective
  void rejoin_parameters();
  /// Gives all ranks the values that rank `root` has of these parameters, which are whole on each rank: they are lent,
  /// or nothing is sharded or divided. @collective
  void share_parameters(const std::vector<at::Tensor>& parameters, int root) const;
  /// Gives all ranks `root`'s parameters and buffers, and compares replicas in the same passes again. @collective
  void copy_from(int root);
  /// Rank 0's buffers, by the TensorImpl of this rank's, where ranks have buffers of their own (ddp.broadcast_buffers
  /// is off); otherwise nothing. @collective
  std::map<const void*, at::Tensor> buffers_of_first_rank();

  /// Each rank, or each group of ranks, trains a replica of its own from now on (LocalSGD).
  void begin_apart() { apart_ = true, equal_at_ = differs; }
  /// From the next pass on, these ranks train together, without the others; null: all ranks again. Where parameters are
  /// in zero.ignore, their gradients have a pass of their own: `of_ignored`. Both must outlive that. Local.
  void train_among(const parallel::DataParallel* binding, const parallel::DataParallel* of_ignored);
  /// The ranks train together again. `equal`: they have averaged; otherwise replicas may differ until they are loaded.
  void end_apart(bool equal);
  bool is_apart() const { return apart_; }
  /// All ranks have the same replica now: until the next backward pass, or for good where they train together.
  void note_equal() { equal_at_ = apart_ ? std::optional(arrivals()) : std::nullopt; }
  /// Whether replicas may differ between ranks.
  bool may_differ() const { return equal_at_ && *equal_at_ != arrivals(); }
  /// Throws UsageError, which names `call`, where they may. Local.
  void require_equal(std::string_view call) const;

  /// Announces all further collectives to ranks without batches, as those of model `index`. Null stops that.
  void announce_by(const parallel::UnevenInputs* uneven, int index);
  /// Whether some ranks may have run out of batches.
  bool may_lack_ranks() const { return uneven_ != nullptr; }
  /// Takes part in a collective that ranks with batches have announced. @collective
  void follow(const parallel::UnevenInputs::Announcement& announcement);

  /// Removes the gradient hooks. The Accelerator calls it before it is destroyed; handles may outlive it.
  void retire() {
    reducer_->retire();
    if (scatter_) scatter_->retire();
  }
  /// Hands over the sharded parameters, for the caller to release: parameters of a living module then own their memory
  /// again. Call retire() first.
  std::unique_ptr<parallel::ShardedModel> release() {
    scatter_.reset();
    own_.clear();
    parameters_.clear();
    kept_.reset();
    return std::move(sharded_);
  }
  void check_alive() const { session_->check_alive("model"); }

 private:
  /// Each buffer once.
  static std::vector<at::Tensor> buffers_of(const torch::nn::Module& module);
  void after_reduction();
  void require_pass() const;
  /// The ranks that have the same layers of this model: all, unless it is staged.
  const mpi::Communicator& with_same_layers() const;
  void lend_stages();  ///< @collective
  /// How many gradients and passes have come so far.
  std::int64_t arrivals() const { return reducer_->arrivals() + scatters(); }
  /// The ranks that train the model together now.
  const parallel::DataParallel& together() const { return among_ != nullptr ? *among_ : parallel_; }
  void require_stepped() const;
  void guard_slices();
  bool shares_buffers() const;
  void send_buffers();
  void check_replicas_when_due();

  std::shared_ptr<torch::nn::Module> kept_;  ///< null if the module is borrowed
  torch::nn::Module* module_;
  std::string name_;
  std::shared_ptr<const AcceleratorSession> session_;
  const parallel::DataParallel parallel_;
  c10::DeviceType device_type_ = c10::kCPU;
  std::optional<c10::ScalarType> autocast_type_;
  AutocastOptions autocast_options_ = {};
  std::optional<c10::ScalarType> output_type_ = {};
  parallel::BufferBroadcast buffers_;
  bool buffers_are_stale_ = true;  ///< forward may have changed them since the last broadcast
  double buffer_seconds_ = 0;
  std::vector<parallel::NamedParameter> parameters_;  ///< including taken and frozen ones
  std::vector<at::Tensor> own_;
  static constexpr std::int64_t differs = -1;
  bool apart_ = false;
  std::optional<std::int64_t> equal_at_ = {};  ///< arrivals at which replicas are equal; nothing: they always are
  std::int64_t reductions_ = 0;
  const parallel::DataParallel* among_ = nullptr;           ///< null: all ranks train together
  std::optional<parallel::BufferBroadcast> buffers_among_;  ///< nothing unless some ranks train without the others
  std::int64_t other_reductions_ = 0;                       ///< of all ranks while some train, and of these otherwise
  int lends_ = 0;                                           ///< calls of lend_parameters() that have not ended
  const parallel::UnevenInputs* uneven_ = nullptr;
  int index_ = 0;
  bool learns_ = true;
  ModelHooks hooks_;
  std::unique_ptr<parallel::StagedModule> staged_;
  std::unique_ptr<parallel::StagesOfModule> stages_of_module_;  ///< null without staged_
  std::unique_ptr<parallel::DividedModule> divided_;
  std::unique_ptr<parallel::ShardedModel> sharded_;
  std::unique_ptr<parallel::GradientReducer> reducer_;  ///< last, with scatter_: their hooks use the members above
  std::unique_ptr<parallel::GradientScatter> scatter_;
};

/// While it lives, a model has whole parameters on each rank. Changes of them are lost.
class WholeParameters {
 public:
  /// `model` may be null. @collective
  explicit WholeParameters(ModelCore* model) : model_(model) {
    if (model_ != nullptr) model_->lend_parameters();
  }
  ~WholeParameters() {
    if (model_ != nullptr) model_->take_back_parameters(/*keep_changes=*/false);
  }
  WholeParameters(const WholeParameters&) = delete;
  WholeParameters& operator=(const WholeParameters&) = delete;

 private:
  ModelCore* model_;
};

}  // namespace hortator::step
