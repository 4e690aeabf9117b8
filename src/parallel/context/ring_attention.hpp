#pragma once

#include "parallel/context/ring.hpp"

namespace hortator::parallel {

/// scaled_dot_product_attention of this rank's queries with the keys and values of all ranks, which travel from each
/// rank to the next. A rank has memory for two ranks' keys and values, beside its own; in backward for those and three
/// ranks' gradients of them. Batches have equal sizes; heads of keys divide those of queries. Cannot be differentiated
/// twice.
/// @collective, and so is backward
at::Tensor ring_attention(const RingOperands& mine, const Ring& ring);

}  // namespace hortator::parallel
