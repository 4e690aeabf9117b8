#include "fake_hip.hpp"

#include <c10/hip/HIPCachingAllocator.h>
#include <hip/hip_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace hortator::test {
namespace {

c10::cuda::CUDACachingAllocator::OutOfMemoryObserver current_observer;

hipError_t text_for(int device, char* to, int length, const std::string& before, const std::string& after) {
  if (device < 0 || device > 1) return hipErrorInvalidDevice;
  const auto text = before + std::to_string(device) + after;
  std::strncpy(to, text.c_str(), static_cast<std::size_t>(length));
  return hipSuccess;
}

}  // namespace

FakeHip& fake_hip() {
  static FakeHip hip;
  return hip;
}

void run_out_of_memory(std::size_t asked_bytes) { current_observer(0, asked_bytes, 0, 0); }
bool is_observed() { return static_cast<bool>(current_observer); }

}  // namespace hortator::test

using hortator::test::fake_hip;

void c10::cuda::CUDACachingAllocator::attachOutOfMemoryObserver(OutOfMemoryObserver observer) {
  hortator::test::current_observer = std::move(observer);
}

hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device) {
  if (device < 0 || device > 1) return hipErrorInvalidDevice;
  std::memcpy(uuid->bytes, device == 0 ? "0123456789abcdef" : "fedcba9876543210", sizeof uuid->bytes);
  return hipSuccess;
}
hipError_t hipDeviceGetPCIBusId(char* address, int length, int device) {
  return hortator::test::text_for(device, address, length, "0000:C", ":00.0");
}
hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
  return hortator::test::text_for(device, name, length, "Fictitious Instinct ", "");
}

hipError_t hipHostMalloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  if (bytes > fake_hip().largest_block) return hipErrorOutOfMemory;
  *memory = std::malloc(bytes);
  ++fake_hip().locked_blocks;
  return hipSuccess;
}
hipError_t hipHostFree(void* memory) {
  std::free(memory);
  --fake_hip().locked_blocks;
  return hipSuccess;
}
hipError_t hipGetLastError() {
  ++fake_hip().last_errors_read;
  return hipSuccess;
}
const char* hipGetErrorString(hipError_t error) {
  return error == hipErrorOutOfMemory ? "out of memory" : "invalid device ordinal";
}
