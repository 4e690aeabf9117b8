#include "machine/device/copy_bytes.hpp"

#include <ATen/ops/from_blob.h>

#include <cstring>

namespace hortator::machine {
namespace {

at::Tensor bytes_at(std::byte* memory, std::size_t bytes, c10::Device device) {
  return at::from_blob(
      memory, {static_cast<std::int64_t>(bytes)}, [](void*) {}, at::TensorOptions(device).dtype(at::kByte), device);
}

}  // namespace

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, c10::Device device) {
  if (device.is_cpu()) {
    std::memcpy(to, from, bytes);
  } else {
    bytes_at(to, bytes, device).copy_(bytes_at(const_cast<std::byte*>(from), bytes, device));
  }
}

}  // namespace hortator::machine
