#include "counted_calls.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

namespace {

std::atomic<long> waits = 0;
std::atomic<long> device_to_host = 0;

// The function of that name in the libraries that are loaded after this program.
template <typename Function>
Function* behind_us(const char* name) {
  auto* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

cudaMemoryType memory_type_of(const void* memory) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) == cudaSuccess) return attributes.type;
  static_cast<void>(cudaGetLastError());
  return cudaMemoryTypeUnregistered;
}

bool is_on_host(const void* memory) {
  const auto type = memory_type_of(memory);
  return type == cudaMemoryTypeUnregistered || type == cudaMemoryTypeHost;
}

enum class Caller { waits, continues };

// A copy of memory that is not page-locked blocks, even if it is called asynchronous.
void count_copy(const void* to, const void* from, Caller caller) {
  const bool is_pageable =
      memory_type_of(to) == cudaMemoryTypeUnregistered || memory_type_of(from) == cudaMemoryTypeUnregistered;
  if (caller == Caller::waits || is_pageable) ++waits;
  if (is_on_host(to) && !is_on_host(from)) ++device_to_host;
}

}  // namespace

namespace hortator::test {

DeviceCalls device_calls() { return {.waits = waits, .device_to_host = device_to_host}; }

}  // namespace hortator::test

// NOLINTBEGIN(readability-identifier-naming): the runtime's own names
extern "C" {

cudaError_t cudaDeviceSynchronize() {
  ++waits;
  static auto* const real = behind_us<decltype(cudaDeviceSynchronize)>("cudaDeviceSynchronize");
  return real();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ++waits;
  static auto* const real = behind_us<decltype(cudaStreamSynchronize)>("cudaStreamSynchronize");
  return real(stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ++waits;
  static auto* const real = behind_us<decltype(cudaEventSynchronize)>("cudaEventSynchronize");
  return real(event);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  count_copy(to, from, Caller::waits);
  static auto* const real = behind_us<decltype(cudaMemcpy)>("cudaMemcpy");
  return real(to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  count_copy(to, from, Caller::continues);
  static auto* const real = behind_us<decltype(cudaMemcpyAsync)>("cudaMemcpyAsync");
  return real(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  count_copy(to, from, Caller::continues);
  static auto* const real = behind_us<decltype(cudaMemcpy2DAsync)>("cudaMemcpy2DAsync");
  return real(to, to_pitch, from, from_pitch, width, height, kind, stream);
}

// Allocating and freeing device memory waits for the device.
cudaError_t cudaFree(void* memory) {
  ++waits;
  static auto* const real = behind_us<cudaError_t(void*)>("cudaFree");
  return real(memory);
}

cudaError_t cudaFreeHost(void* memory) {
  ++waits;
  static auto* const real = behind_us<cudaError_t(void*)>("cudaFreeHost");
  return real(memory);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
