#include "step/precision/device_view.hpp"

#include <ATen/ops/from_blob.h>

namespace hortator::step {

at::Tensor device_view(const at::Tensor& page_locked, c10::Device device) {
  return at::from_blob(
      page_locked.mutable_data_ptr(), page_locked.sizes(), [](void*) {}, page_locked.options().device(device), device);
}

}  // namespace hortator::step
