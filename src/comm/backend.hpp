#pragma once

#include <optional>
#include <string>

namespace hortator::comm {

/// staged: CUDA tensors by a back end of the CPU, through the host's memory.
enum class Backend { self, mpi, node, nccl, staged };

/// What decides which back end carries tensors.
struct BackendRequest {
  std::optional<std::string> asked = {};  ///< HORTATOR_COMMUNICATOR: auto, mpi, node or nccl
  bool on_cuda = false;                   ///< where the tensors are
  bool has_cuda_tensors = false;          ///< does the job work on CUDA devices at all
  bool has_nccl = false;                  ///< is it in this build
  bool shares_devices = false;            ///< HORTATOR_SHARE_DEVICES: several ranks may have one, which NCCL refuses
  int ranks = 1;
  int largest_node = 1;  ///< ranks of the node that has most
};

/// `self` for one rank, `nccl` on CUDA (`staged` where ranks may share devices), `node` where ranks share memory, else
/// `mpi`. What is asked for and cannot be had throws.
Backend choose_backend(const BackendRequest& request);

}  // namespace hortator::comm
