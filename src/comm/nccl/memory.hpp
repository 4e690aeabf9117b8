#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "comm/nccl/handle.hpp"

namespace hortator::comm {

/// A flat tensor in memory from which NCCL sends and receives without copies of its own. It may outlive the
/// communicator; its memory goes with its last view. NCCL's rule: if one rank passes such memory to a collective, all
/// do, at the same offset. Not for many small tensors: it comes in pieces of megabytes, and freeing it waits for the
/// device.
at::Tensor nccl_allocate(const std::shared_ptr<NcclHandle>& handle, c10::Device device, std::int64_t elements,
                         at::ScalarType type);

}  // namespace hortator::comm
