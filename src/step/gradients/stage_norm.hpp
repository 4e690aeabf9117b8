#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"

namespace hortator::step {

/// total_norm() of the gradients of all stages of a pipeline with the bits that one rank computes, which has all of
/// them: the norms of tensors are put together in the order of `parameters`, the same list on all ranks. `counted`:
/// those of it whose gradients this rank contributes. @collective over `stages`
at::Tensor total_norm_in_order(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& counted,
                               double norm_type, comm::Communicator& stages);

}  // namespace hortator::step
