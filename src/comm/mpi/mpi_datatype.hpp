#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include "comm/reduce_op.hpp"

namespace hortator::comm {

/// The MPI type for tensors of `type`. Throws for types that MPI cannot carry.
MPI_Datatype mpi_datatype(at::ScalarType type);

/// The MPI operation that reduces `type` by `op`. For a mean it is the sum, which the caller divides.
MPI_Op mpi_operation(at::ScalarType type, ReduceOp op);

/// The type in which MPI reduces `type`. MPI has no 16-bit floats: they are reduced in float32 and rounded once at the
/// end.
at::ScalarType reduction_type(at::ScalarType type);

}  // namespace hortator::comm
