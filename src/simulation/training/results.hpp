#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::simulation {

/// Copies a result of a model to the caller's array. Throws UsageError, with the name `what`, for an array of another
/// shape, or of a type in which fractions or imaginary parts would be lost.
/// Throws UsageError unless the array can hold the result.
void require_fit(const at::Tensor& result, const at::Tensor& to, const char* what);
void write_result(const at::Tensor& result, const at::Tensor& to, const char* what);

}  // namespace hortator::simulation
