#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::step {

/// Page-locked host memory as a tensor of `device`, at the same address, so that kernels can write to it. Does not own
/// the memory: `page_locked` must outlive all pending writes of the device.
at::Tensor device_view(const at::Tensor& page_locked, c10::Device device);

}  // namespace hortator::step
