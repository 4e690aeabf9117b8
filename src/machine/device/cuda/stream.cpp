#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "machine/device/stream.hpp"

namespace hortator::machine {
namespace {

// Makes an event at the current position of `stream`, without timing, which makes waiting cheaper. Needs the guard: an
// event belongs to the current device, and so does the default stream, which has no handle of its own.
Event event_in(const c10::cuda::CUDAStream& stream) {
  const c10::DeviceGuard guard(stream.device());
  cudaEvent_t event = nullptr;
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  Event result(event, stream.device_index());
  C10_CUDA_CHECK(cudaEventRecord(event, stream.stream()));
  return result;
}

void wait_in(const c10::cuda::CUDAStream& stream, const Event& event) {
  const c10::DeviceGuard guard(stream.device());
  C10_CUDA_CHECK(cudaStreamWaitEvent(stream.stream(), static_cast<cudaEvent_t>(event.native()), 0));
}

}  // namespace

Stream::Stream(int device)
    : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, static_cast<c10::DeviceIndex>(device)).unwrap()) {}

void* Stream::native() const { return c10::cuda::CUDAStream(stream_).stream(); }

void Stream::follow_current() const {
  wait_in(c10::cuda::CUDAStream(stream_), event_in(c10::cuda::getCurrentCUDAStream(stream_.device_index())));
}

Event Stream::mark() const { return event_in(c10::cuda::CUDAStream(stream_)); }

// An event may be destroyed before it is reached. Destroying and querying work with any current device.
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
  wait_in(c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device_)), *this);
}

void wait_until_idle(int device) {
  const c10::DeviceGuard guard({c10::kCUDA, static_cast<c10::DeviceIndex>(device)});
  C10_CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace hortator::machine
