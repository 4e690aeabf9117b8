#pragma once

// NCCL, or on ROCm RCCL, which has NCCL's names.
#ifdef HORTATOR_ROCM
#include <rccl/rccl.h>
#else
#include <nccl.h>
#endif

namespace hortator::comm {

/// A stream of the device, as the library takes it.
#ifdef HORTATOR_ROCM
using NcclStream = hipStream_t;
#else
using NcclStream = cudaStream_t;
#endif

}  // namespace hortator::comm
