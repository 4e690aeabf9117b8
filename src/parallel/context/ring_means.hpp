#pragma once

#include "parallel/context/ring.hpp"

namespace hortator::parallel {

/// The attention of this rank's queries to the keys and values of all ranks, which travel from each rank to the next
/// while it computes with those that it has. An error of one rank, memory that runs out included, is thrown by all.
/// Without autograd. @collective
AttentionMeans attend_in_ring(const RingOperands& mine, const Ring& ring);

}  // namespace hortator::parallel
