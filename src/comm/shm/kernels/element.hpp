#pragma once

#include <c10/core/ScalarType.h>

#include "comm/shm/kernels/reduce_kernels.hpp"

namespace hortator::comm {

/// The kernels' element type for tensors of `type`. Throws for types that cannot be reduced.
kernels::Element element_of(at::ScalarType type);

}  // namespace hortator::comm
