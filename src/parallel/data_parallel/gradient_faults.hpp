#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/error.hpp>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"

/// Gradients that cannot be averaged over ranks.
namespace hortator::parallel {

/// Throws UsageError if the gradient of the parameter `name` is sparse.
void check_dense(const std::string& name, const at::Tensor& gradient);

/// The parameters `names` got no gradient.
Problem missing_gradients(const std::string& names);

/// Throws the same error on all ranks, with the names of the first rank that has any. `missing` are the names of the
/// parameters without a gradient on this rank; at least one rank must have one. @collective
[[noreturn]] void throw_missing(const mpi::Communicator& host, const std::vector<std::string>& missing);

}  // namespace hortator::parallel
