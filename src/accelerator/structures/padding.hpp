#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/detail/leaves.hpp>
#include <hortator/training/accelerator_options.hpp>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::accelerator {

/// Returns the tensor padded to the largest size of all ranks along one dimension. All ranks throw if the tensor of
/// some rank cannot be padded. @collective over `host`
at::Tensor pad_across(const mpi::Communicator& host, const at::Tensor& tensor, const PadOptions& options);
/// The same for each leaf, in place. Throws if ranks differ in structure. @collective over `host`
void pad_across(const mpi::Communicator& host, const std::vector<detail::Leaf>& leaves, const PadOptions& options);

}  // namespace hortator::accelerator
