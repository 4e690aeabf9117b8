#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::sim {

/// Copies between a device and the host, or between devices, as LibTorch does on CUDA: a copy that is not non-blocking,
/// or whose host memory is not page-locked, ends before the call returns, or at least no longer reads that memory.
at::Tensor copy_tensor(const at::Tensor& from, const at::Tensor& to, bool non_blocking);

}  // namespace hortator::sim
