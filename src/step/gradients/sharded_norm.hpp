#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"
#include "step/gradients/gradient_groups.hpp"

namespace hortator::step {

/// Tensors whose gradients are clipped together.
struct GradientHolders {
  std::vector<at::Tensor> whole = {};   ///< parameters, the same on all ranks
  std::vector<at::Tensor> shards = {};  ///< slices, different on each rank

  std::vector<at::Tensor> all() const;
};

/// The norm of all gradients as one vector, equal on all ranks; see total_norm(). `group` are the ranks that share the
/// slices. @collective if there are slices
at::Tensor total_norm(const GradientHolders& holders, double norm_type, comm::Communicator& group);

}  // namespace hortator::step
