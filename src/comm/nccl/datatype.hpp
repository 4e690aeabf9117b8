#pragma once

#include <ATen/core/Tensor.h>
#include <nccl.h>

#include "comm/reduce_op.hpp"

namespace hortator::comm {

/// How NCCL reduces tensors of a type. (What is only moved goes as bytes, whatever its type.)
struct NcclReduction {
  at::ScalarType carrier;  ///< the type in which the data is handed over: its own, if NCCL knows it
  ncclDataType_t type;
  ncclRedOp_t op;
  int scalars;  ///< NCCL's elements in one of the tensor's: complex numbers are two
};

/// Throws for types and operations that NCCL cannot reduce. 16-bit floats are reduced in their own type, each partial
/// sum rounded: as NCCL does for everybody, and half the bytes, which is why one asks for them.
NcclReduction nccl_reduction(at::ScalarType type, ReduceOp op);

}  // namespace hortator::comm
