#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

#include "machine/device/device.hpp"
#include "machine/device/stream.hpp"

namespace hortator::machine {
namespace {

std::string uuid_of(const cudaDeviceProp& device) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned char>(device.uuid.bytes[i]));
    text += pair;
  }
  return text;
}

std::string pci_address_of(const cudaDeviceProp& device) {
  char text[sizeof "00000000:00:00.0"];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", static_cast<unsigned>(device.pciDomainID),
                static_cast<unsigned>(device.pciBusID) & 0xffU, static_cast<unsigned>(device.pciDeviceID) & 0xffU);
  return text;
}

}  // namespace

const DeviceKind* accelerator_kind() {
  static const auto* const kind = &*std::ranges::find(known_kinds(), "cuda", &DeviceKind::name);
  return kind;
}

// The runtime takes milliseconds a device to collect all properties, and they never change.
DeviceIdentity identify(c10::Device device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, DeviceIdentity> known;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(device.index()); found != known.end()) return found->second;
  cudaDeviceProp found{};
  const auto code = cudaGetDeviceProperties(&found, device.index());
  if (code != cudaSuccess) throw_no_answer(device, cudaGetErrorString(code));
  const DeviceIdentity identity{.name = found.name, .uuid = uuid_of(found), .pci_address = pci_address_of(found)};
  known.emplace(device.index(), identity);
  return identity;
}

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 10  // its allocators have no generic class for this
std::size_t free_memory(c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  std::size_t free = 0;
  std::size_t total = 0;
  const auto code = cudaMemGetInfo(&free, &total);
  if (code != cudaSuccess) throw_no_answer(device, cudaGetErrorString(code));
  return free;
}
#endif

void* Stream::native() const { return c10::cuda::CUDAStream(stream_).stream(); }

c10::Stream stream_of_native(void* native, c10::Device device) {
  if (native == nullptr) return c10::cuda::getDefaultCUDAStream(device.index()).unwrap();
  return c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(native), device.index()).unwrap();
}

}  // namespace hortator::machine
