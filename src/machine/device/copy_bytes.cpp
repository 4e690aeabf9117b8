#include "machine/device/copy_bytes.hpp"

#include <ATen/ops/from_blob.h>

#include <cstring>
#include <utility>

namespace hortator::machine {

at::Tensor byte_view(void* memory, std::size_t bytes, c10::Device device, std::shared_ptr<void> owner) {
  return at::from_blob(
      memory, {static_cast<std::int64_t>(bytes)}, [owner = std::move(owner)](void*) {},
      at::TensorOptions(device).dtype(at::kByte), device);
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, c10::Device device) {
  if (device.is_cpu()) {
    std::memcpy(to, from, bytes);
  } else {
    byte_view(to, bytes, device).copy_(byte_view(const_cast<std::byte*>(from), bytes, device));
  }
}

}  // namespace hortator::machine
