#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "train/buffer_broadcast.hpp"
#include "train/data_parallel.hpp"
#include "train/gradient_reducer.hpp"
#include "train/session.hpp"
#include "train/uneven_inputs.hpp"

namespace hortator::train {

/// Tensors by identity.
using TensorSet = std::unordered_set<const void*>;  // by TensorImpl

/// What stands behind a prepared model's handle.
class ModelCore {
 public:
  /// Replicates rank 0's weights. `module` is borrowed. Parameters that are `taken` belong to a model that was prepared
  /// before, which averages their gradients. @collective
  ModelCore(torch::nn::Module& module, std::string name, std::shared_ptr<const Session> session,
            const DataParallel& parallel, const TensorSet& taken = {});

  torch::nn::Module& module() const { return *module_; }
  const std::string& name() const { return name_; }
  /// Each once, also frozen ones and those of models that were prepared before.
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  GradientReducer& reducer() { return reducer_; }
  GradientTimes times() const;

  /// @collective where buffers have to be sent: in training mode, with gradients that will be averaged.
  void before_forward();
  /// All ranks get `root`'s buffers, if that was asked for. @collective
  void share_buffers(int root = 0);
  /// All ranks get `root`'s parameters and buffers. @collective
  void become_that_of(int root);

  /// From now on all collectives are announced, as those of model number `index`; null: no more.
  void announce_by(const UnevenInputs* uneven, int index);
  /// Does what ranks that still have batches announce. @collective
  void follow(const UnevenInputs::Announcement& announcement);

  /// The Accelerator goes; handles may keep this a while longer.
  void retire() { reducer_.retire(); }
  void check_alive() const { session_->check_alive("model"); }

 private:
  void after_reduction();
  bool shares_buffers() const;
  void send_buffers();
  void check_replicas_at_times();

  torch::nn::Module* module_;
  std::string name_;
  std::shared_ptr<const Session> session_;
  const DataParallel parallel_;
  BufferBroadcast buffers_;
  bool buffers_are_stale_ = true;  ///< forward may have changed them since they were sent
  double buffer_seconds_ = 0;
  std::vector<NamedParameter> parameters_;  ///< all of them, also taken and frozen ones
  std::int64_t reductions_ = 0;
  const UnevenInputs* uneven_ = nullptr;
  int index_ = 0;
  GradientReducer reducer_;  ///< last: its hooks call into the rest
};

}  // namespace hortator::train
