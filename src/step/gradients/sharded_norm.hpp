#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"
#include "step/gradients/gradient_groups.hpp"

namespace hortator::step {

/// Whose gradients are to be clipped together.
struct GradientHolders {
  std::vector<at::Tensor> whole = {};   ///< parameters, the same on all ranks
  std::vector<at::Tensor> shards = {};  ///< slices, of which each rank has its own

  std::vector<at::Tensor> all() const;
};

/// The norm of all these gradients as if they were one vector, the same on all ranks: see total_norm(). `group` are the
/// ranks that have the shards. @collective where there are shards
at::Tensor total_norm(const GradientHolders& holders, double norm_type, comm::Communicator& group);

}  // namespace hortator::step
