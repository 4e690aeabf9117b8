#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

#include "parallel/zero/disk_arrays.hpp"

namespace hortator::step {

/// Throws, naming its type, unless the optimizer's moments are known before its first step: torch::optim's AdamW and
/// Adam.
void require_known_moments(const torch::optim::Optimizer& optimizer);

/// What an optimizer remembers, in a file but for the parts that a step is at.
class MomentsOnDisk {
 public:
  explicit MomentsOnDisk(parallel::ArrayPlacement home) : home_(std::move(home)) {}

  /// Whose moments: one of the parameters of one of the groups.
  struct Owner {
    at::Tensor parameter = {};
    std::size_t group = 0;
    std::string name = {};
  };
  /// The moments of all these go to the file, unless they are there: those that are not made yet as zeros, and those
  /// that have come since then (a checkpoint's, a new parameter's).
  void keep(torch::optim::Optimizer& optimizer, const std::vector<Owner>& owners);

 private:
  void move(torch::optim::Optimizer& optimizer, const std::vector<Owner>& owners);

  parallel::ArrayPlacement home_;
  std::unique_ptr<parallel::DiskArrays> arrays_;
};

}  // namespace hortator::step
