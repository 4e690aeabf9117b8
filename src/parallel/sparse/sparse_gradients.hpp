#pragma once

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"

namespace hortator::parallel {

/// Returns the average over the ranks of the sparse gradients of `parameter`, coalesced and bitwise the same on each:
/// the rows of all ranks, not the whole parameter, travel. `mine` is this rank's gradient; undefined: none, which
/// counts as zero. @collective
at::Tensor average_rows(comm::Communicator& communicator, const at::Tensor& parameter, const at::Tensor& mine);

}  // namespace hortator::parallel
