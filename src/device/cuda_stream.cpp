#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "device/stream.hpp"

namespace hortator::device {
namespace {

// Taken at the place that `stream` has come to. Events without times are cheaper to wait for.
Event event_in(const c10::cuda::CUDAStream& stream) {
  cudaEvent_t event = nullptr;
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  Event result(event);
  C10_CUDA_CHECK(cudaEventRecord(event, stream.stream()));
  return result;
}

}  // namespace

Stream::Stream(int device)
    : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, static_cast<c10::DeviceIndex>(device)).unwrap()) {}

void* Stream::native() const { return c10::cuda::CUDAStream(stream_).stream(); }

void Stream::follow_current() const {
  const auto event = event_in(c10::cuda::getCurrentCUDAStream(stream_.device_index()));
  C10_CUDA_CHECK(
      cudaStreamWaitEvent(c10::cuda::CUDAStream(stream_).stream(), static_cast<cudaEvent_t>(event.native()), 0));
}

Event Stream::mark() const { return event_in(c10::cuda::CUDAStream(stream_)); }

// Destroying an event that is still to come is allowed: CUDA keeps what it needs of it.
Event::~Event() {
  if (native_) C10_CUDA_CHECK_WARN(cudaEventDestroy(static_cast<cudaEvent_t>(native_)));
}

bool Event::is_reached() const {
  const auto state = cudaEventQuery(static_cast<cudaEvent_t>(native_));
  if (state == cudaErrorNotReady) {
    (void)cudaGetLastError();  // not an error, but kept as the last one
    return false;
  }
  C10_CUDA_CHECK(state);
  return true;
}

void Event::hold_current_stream() const {
  C10_CUDA_CHECK(cudaStreamWaitEvent(c10::cuda::getCurrentCUDAStream().stream(), static_cast<cudaEvent_t>(native_), 0));
}

void wait_until_idle(int device) {
  const c10::DeviceGuard on({c10::kCUDA, static_cast<c10::DeviceIndex>(device)});
  C10_CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace hortator::device
