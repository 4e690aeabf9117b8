#pragma once

#include <torch/nn/module.h>

#include <hortator/training/autocast.hpp>
#include <hortator/training/precision.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/data_parallel/buffer_broadcast.hpp"
#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/data_parallel/gradient_reducer.hpp"
#include "parallel/uneven/uneven_inputs.hpp"
#include "parallel/zero/gradient_scatter.hpp"
#include "step/session.hpp"
#include "step/tensor_set.hpp"

namespace hortator::step {

/// What stands behind a prepared model's handle.
class ModelCore {
 public:
  /// Replicates rank 0's weights. `module` is kept where it is shared, and borrowed otherwise. Parameters that are
  /// `taken` belong to a model that was prepared before, which averages their gradients. One that does not learn sends
  /// nothing after that. @collective
  ModelCore(torch::nn::Module& module, std::string name, std::shared_ptr<const Session> session,
            const parallel::DataParallel& parallel, const TensorSet& taken = {}, bool learns = true);

  torch::nn::Module& module() const { return *module_; }
  bool wraps(const torch::nn::Module& module) const { return module_ == &module; }
  /// Of the module that stands at its address now: is it another one?
  bool has_gone() const;
  const std::string& name() const { return name_; }
  /// Without those that belong to a model prepared before, and those that are frozen.
  const std::vector<at::Tensor>& own_parameters() const { return own_; }
  std::vector<at::Tensor> distinct_buffers() const;
  /// Each once, also frozen ones and those of models that were prepared before.
  const std::vector<parallel::NamedParameter>& parameters() const { return parameters_; }
  /// Who pauses and counts them; what it averages is whole.
  parallel::GradientReducer& reducer() { return reducer_; }
  /// All gradients of this pass are there: averages, or this rank's shards of them. @collective
  void finish_gradients();
  /// Will a pass that reaches this model now be averaged over the ranks?
  bool sends_gradients() const { return learns_ && (scatter_ != nullptr || !reducer_.is_paused()); }
  /// The tensors that have the gradients: parameters, or their slices.
  std::vector<at::Tensor> gradient_holders() const;
  /// How often gradients were dealt out to shards.
  std::int64_t scatters() const { return scatter_ ? scatter_->passes() : 0; }
  void zero_grad();
  /// Null unless this model's parameters are sharded.
  parallel::FlatParameters* flat() const { return flat_.get(); }
  bool scatters_gradients() const { return scatter_ != nullptr; }
  GradientTimes times() const;

  /// From now on forward computes in this type, on the device of the parameters.
  void compute_in(Precision precision);
  bool is_mixed() const { return autocast_type_.has_value(); }
  /// As long as it lives, this thread computes as forward does.
  Autocast autocast() const { return Autocast(device_type_, autocast_type_); }

  /// @collective where buffers have to be sent: in training mode, with gradients that will be averaged.
  void before_forward();
  /// All ranks get `root`'s buffers, if that was asked for. @collective
  void share_buffers(int root = 0);
  /// Sharded parameters: from now on each rank has all of them to itself, until flat()->take_back(); or all throw.
  /// @collective
  void lend_parameters();
  /// All ranks get `root`'s parameters and buffers. @collective
  void copy_from(int root);

  /// From now on all collectives are announced, as those of model number `index`; null: no more.
  void announce_by(const parallel::UnevenInputs* uneven, int index);
  /// Some ranks may have no batches any more.
  bool may_lack_ranks() const { return uneven_ != nullptr; }
  /// Does what ranks that still have batches announce. @collective
  void follow(const parallel::UnevenInputs::Announcement& announcement);

  /// The Accelerator goes; handles may keep this a while longer.
  void retire() {
    reducer_.retire();
    if (scatter_) scatter_->retire();
  }
  /// After that: parameters of a module that lives have memory of their own, once these have been released.
  std::unique_ptr<parallel::FlatParameters> release() {
    scatter_.reset();
    own_.clear();
    parameters_.clear();
    kept_.reset();
    return std::move(flat_);
  }
  void check_alive() const { session_->check_alive("model"); }

 private:
  void after_reduction();
  bool shares_buffers() const;
  void send_buffers();
  void check_replicas_at_times();

  std::shared_ptr<torch::nn::Module> kept_;  ///< null for a plain object, which is borrowed
  torch::nn::Module* module_;
  std::string name_;
  std::shared_ptr<const Session> session_;
  const parallel::DataParallel parallel_;
  c10::DeviceType device_type_ = c10::kCPU;
  std::optional<c10::ScalarType> autocast_type_;
  parallel::BufferBroadcast buffers_;
  bool buffers_are_stale_ = true;  ///< forward may have changed them since they were sent
  double buffer_seconds_ = 0;
  std::vector<parallel::NamedParameter> parameters_;  ///< all of them, also taken and frozen ones
  std::vector<at::Tensor> own_;
  std::int64_t reductions_ = 0;
  const parallel::UnevenInputs* uneven_ = nullptr;
  int index_ = 0;
  bool learns_ = true;
  std::unique_ptr<parallel::FlatParameters> flat_;
  parallel::GradientReducer reducer_;  ///< last, with the other: their hooks call into the rest
  std::unique_ptr<parallel::GradientScatter> scatter_;
};

}  // namespace hortator::step
