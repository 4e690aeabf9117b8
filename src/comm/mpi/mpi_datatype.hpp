#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include "comm/reduce_op.hpp"

namespace hortator::comm {

/// The type in which MPI carries tensors of `type`. Throws for types that it cannot carry.
MPI_Datatype mpi_datatype(at::ScalarType type);

/// The MPI operation that reduces `type` by `op`; a mean is a sum that is divided afterwards.
MPI_Op mpi_operation(at::ScalarType type, ReduceOp op);

/// MPI knows no 16-bit floats: they are reduced in float32, rounded once at the end.
at::ScalarType reduction_type(at::ScalarType type);

}  // namespace hortator::comm
