#pragma once

namespace hortator::test {

/// Calls of the CUDA runtime by anybody in this program.
struct CudaCalls {
  long waits = 0;           ///< that make the host wait for the device, whatever for
  long device_to_host = 0;  ///< copies, also those that nobody waits for
};

CudaCalls cuda_calls();

inline CudaCalls operator-(const CudaCalls& a, const CudaCalls& b) {
  return {.waits = a.waits - b.waits, .device_to_host = a.device_to_host - b.device_to_host};
}

}  // namespace hortator::test
