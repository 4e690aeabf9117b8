#pragma once

#include <c10/core/ScalarType.h>

#include "comm/kernels/reduce_kernels.hpp"
#include "comm/reduce_op.hpp"

namespace hortator::comm {

/// The kernels' element type for tensors of `type`. Throws for types that cannot be reduced.
kernels::Element element_of(at::ScalarType type);

/// Throws where the operation is undefined for this type: a mean of integers, a maximum of complex numbers.
void check_reducible(at::ScalarType type, ReduceOp op);

}  // namespace hortator::comm
