#pragma once

namespace hortator::test {

/// Counts of CUDA runtime calls in this program.
struct CudaCalls {
  long waits = 0;           ///< calls that make the host wait for the device
  long device_to_host = 0;  ///< copies, including asynchronous ones
};

CudaCalls cuda_calls();

inline CudaCalls operator-(const CudaCalls& a, const CudaCalls& b) {
  return {.waits = a.waits - b.waits, .device_to_host = a.device_to_host - b.device_to_host};
}

}  // namespace hortator::test
