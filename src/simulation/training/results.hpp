#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::simulation {

/// Copies a result of a model to the caller's array. Throws UsageError, with the name `what`, for an array of another
/// shape, or of a type in which fractions or imaginary parts would be lost.
void write_result(const at::Tensor& result, const at::Tensor& to, const char* what);

}  // namespace hortator::simulation
