#pragma once

#include <cstddef>
#include <hortator/bigmodel/big_models.hpp>
#include <map>

namespace hortator::bigmodel {

/// What a rank finds on its node.
struct MemoryFacts {
  std::map<int, std::size_t> free_of_devices = {};  ///< bytes by the number of the CUDA device
  int own_device = -1;                              ///< -1: it works on the CPU
  std::size_t host = 0;                             ///< bytes that the node has left
  int local_size = 1;                               ///< ranks that share them
};

MaxMemory max_memory(const MemoryFacts& facts);

}  // namespace hortator::bigmodel
