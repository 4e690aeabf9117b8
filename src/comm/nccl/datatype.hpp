#pragma once

#include <ATen/core/Tensor.h>
#include "comm/nccl/library.hpp"

#include "comm/reduce_op.hpp"

namespace hortator::comm {

/// How NCCL reduces tensors of a type. (Collectives without a reduction move bytes, whatever the type.)
struct NcclReduction {
  at::ScalarType carrier;  ///< the type to which the data is converted; its own if NCCL has it
  ncclDataType_t type;
  ncclRedOp_t op;
  int scalars;  ///< NCCL's elements in one of the tensor's: 2 for complex numbers
};

/// Throws for types and operations that NCCL cannot reduce. 16-bit floats are reduced in their own type with every
/// partial sum rounded, as NCCL always does: half the bytes are the reason to use these types.
NcclReduction nccl_reduction(at::ScalarType type, ReduceOp op);

}  // namespace hortator::comm
