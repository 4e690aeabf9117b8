#include "machine/device/cuda.hpp"

#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::machine {
namespace {

void check_answer(int index, cudaError_t code) {
  if (code == cudaSuccess) return;
  throw Error({.what = text::concat("CUDA device ", index, " does not answer: ", cudaGetErrorString(code)),
               .why = "a rank cannot work without its device",
               .hint = "check nvidia-smi on this node, or exclude the node from the job"});
}

cudaDeviceProp properties(int index) {
  cudaDeviceProp result{};
  check_answer(index, cudaGetDeviceProperties(&result, index));
  return result;
}

}  // namespace

bool is_built() { return true; }

int visible_device_count() { return c10::cuda::device_count(); }

bool is_in_use() {
  for (int index = 0; index < visible_device_count(); ++index) {
    if (c10::cuda::hasPrimaryContext(static_cast<c10::DeviceIndex>(index))) return true;
  }
  return false;
}

std::string name(int index) { return properties(index).name; }

std::string uuid(int index) {
  const auto id = properties(index).uuid;
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned char>(id.bytes[i]));
    text += pair;
  }
  return text;
}

std::string pci_address(int index) {
  const auto device = properties(index);
  char text[sizeof "00000000:00:00.0"];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", static_cast<unsigned>(device.pciDomainID),
                static_cast<unsigned>(device.pciBusID) & 0xffU, static_cast<unsigned>(device.pciDeviceID) & 0xffU);
  return text;
}

std::size_t free_memory(int index) {
  const auto before = c10::cuda::current_device();
  set_current(index);
  std::size_t free = 0, total = 0;
  const auto code = cudaMemGetInfo(&free, &total);
  set_current(before);
  check_answer(index, code);
  return free;
}

void set_current(int index) { c10::cuda::set_device(static_cast<c10::DeviceIndex>(index)); }

}  // namespace hortator::machine
