#pragma once

#include <optional>
#include <string>

namespace hortator::comm {

enum class Backend { self, mpi, node, nccl };

/// What decides which back end carries tensors.
struct BackendRequest {
  std::optional<std::string> asked = {};  ///< HORTATOR_COMMUNICATOR: auto, mpi, node or nccl
  bool on_cuda = false;                   ///< where the tensors are
  bool has_cuda_tensors = false;          ///< does the job work on CUDA devices at all
  bool has_nccl = false;                  ///< is it in this build
  int ranks = 1;
  int largest_node = 1;  ///< ranks of the node that has most
};

/// `self` for one rank, `nccl` on CUDA, `node` where ranks share memory, else `mpi`. What is asked for and cannot be
/// had throws.
Backend choose_backend(const BackendRequest& request);

}  // namespace hortator::comm
