#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "train/gradient_reducer.hpp"
#include "train/session.hpp"

namespace hortator::train {

/// What stands behind a prepared model's handle.
class ModelCore {
 public:
  /// Replicates rank 0's weights. `module` is borrowed. @collective
  ModelCore(torch::nn::Module& module, std::string name, std::shared_ptr<const Session> session,
            comm::Communicator& communicator, const mpi::Communicator& host);

  torch::nn::Module& module() const { return *module_; }
  const std::string& name() const { return name_; }
  GradientReducer& reducer() { return reducer_; }
  /// The Accelerator goes; handles may keep this a while longer.
  void retire() { reducer_.retire(); }
  void check_alive() const { session_->check_alive("model"); }

 private:
  torch::nn::Module* module_;
  std::string name_;
  std::shared_ptr<const Session> session_;
  GradientReducer reducer_;
};

}  // namespace hortator::train
