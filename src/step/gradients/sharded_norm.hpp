#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"
#include "step/gradients/gradient_groups.hpp"

namespace hortator::step {

/// Tensors whose gradients are clipped together.
struct GradientHolders {
  std::vector<at::Tensor> whole = {};            ///< parameters, the same on all ranks
  std::vector<at::Tensor> shards = {};           ///< ZeRO's slices of parameters: each rank of a group has others
  std::vector<at::Tensor> parts = {};            ///< of divided parameters: each tensor rank has others
  std::vector<at::Tensor> shards_of_parts = {};  ///< ZeRO's slices of these

  std::vector<at::Tensor> all() const;
  /// Whether all ranks have all of them.
  bool are_whole() const { return shards.empty() && parts.empty() && shards_of_parts.empty(); }
};

/// The ranks that have the other slices and parts.
struct NormRanks {
  comm::Communicator* shards = nullptr;  ///< null if nothing is sharded
  comm::Communicator* parts = nullptr;   ///< null if nothing is divided
  /// The ranks that have the other slices of this rank's parts; null if they are those of `shards`.
  comm::Communicator* shards_of_parts = nullptr;
  comm::Communicator* stages = nullptr;  ///< that have other layers; null if each rank has all
  c10::Device device = at::kCPU;         ///< of these communicators
};

/// The norm of all gradients as one vector, each counted once, equal on all ranks; see total_norm(). @collective unless
/// all are whole
at::Tensor total_norm(const GradientHolders& holders, double norm_type, const NormRanks& ranks);

/// The norm of each parameter's gradient, [parameters] in fp64, equal on all ranks; `each` has the holder of one
/// parameter. 0 without a gradient. `norm_type` is above 0. One reduction an axis. @collective unless all are whole
at::Tensor norm_of_each(const std::vector<GradientHolders>& each, double norm_type, const NormRanks& ranks);

}  // namespace hortator::step
