#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "comm/nccl/handle.hpp"

namespace hortator::comm {

/// A flat tensor in memory from which NCCL sends and receives without internal copies. It may outlive the communicator;
/// its memory is freed with its last view. NCCL requires that all ranks pass such memory to a collective at the same
/// offset if one does. Not for many small tensors: allocations are rounded up to megabytes, and freeing waits for the
/// device.
at::Tensor nccl_allocate(const std::shared_ptr<NcclHandle>& handle, c10::Device device, std::int64_t elements,
                         at::ScalarType type);

}  // namespace hortator::comm
