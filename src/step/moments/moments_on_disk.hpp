#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

#include "parallel/zero/disk_arrays.hpp"

namespace hortator::step {

/// Throws, naming its type, unless the optimizer is torch::optim's AdamW or Adam, whose moments are known before the
/// first step.
void require_known_moments(const torch::optim::Optimizer& optimizer);

/// An optimizer's moments in a file; only those that a step is working on are in memory.
class MomentsOnDisk {
 public:
  explicit MomentsOnDisk(parallel::ArrayPlacement home) : home_(std::move(home)) {}

  /// A parameter that has moments, and its group.
  struct Owner {
    at::Tensor parameter = {};
    std::size_t group = 0;
    std::string name = {};
  };
  /// Moves the moments of all owners to the file, unless they are there already. Missing moments become zeros; moments
  /// that were replaced in memory (by a checkpoint, or a new parameter's) are moved again.
  void keep(torch::optim::Optimizer& optimizer, const std::vector<Owner>& owners);

 private:
  void move(torch::optim::Optimizer& optimizer, const std::vector<Owner>& owners);

  parallel::ArrayPlacement home_;
  std::unique_ptr<parallel::DiskArrays> arrays_;
};

}  // namespace hortator::step
