#pragma once

#include <cstddef>
#include <hortator/bigmodel/big_models.hpp>
#include <map>

#include "bigmodel/module_tree.hpp"

namespace hortator::bigmodel {

/// The memory of a node, as one rank sees it.
struct NodeMemory {
  std::map<int, std::size_t> free_by_device = {};  ///< bytes, by number of the CUDA device
  int own_device = -1;                             ///< -1 if the rank computes on the CPU
  std::size_t host = 0;                            ///< free bytes of the node
  int local_size = 1;                              ///< ranks on the node
};

/// Implements get_max_memory(). Pure.
MaxMemory max_memory(const NodeMemory& node);

/// Lowers the limits of `options.max_memory` so that CUDA devices hold about equal parts. Each device but the last may
/// hold its share plus a reserve, since layers do not fill shares exactly.
MaxMemory balanced_memory(const ModuleTree& tree, const BalanceOptions& options);

}  // namespace hortator::bigmodel
