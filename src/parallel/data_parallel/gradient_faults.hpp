#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "mpi/communicator.hpp"

/// What backward may leave that cannot be averaged over ranks.
namespace hortator::parallel {

/// UsageError when the gradient of the parameter `name` is sparse.
void check_dense(const std::string& name, const at::Tensor& gradient);

/// The names of parameters without a gradient, here, where some rank has any: the same error everywhere, of the first
/// rank that has. @collective
[[noreturn]] void throw_missing(const mpi::Communicator& host, const std::vector<std::string>& missing);

}  // namespace hortator::parallel
