#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::step {

/// Page-locked memory of the host as a device sees it: kernels write it as they write their own. It has one address for
/// both. Belongs to `page_locked`, which must outlive whatever the device is still to write.
at::Tensor device_view(const at::Tensor& page_locked, c10::Device device);

}  // namespace hortator::step
