#pragma once

namespace hortator::test {

/// Counts of CUDA runtime calls in this program, or of what the simulated accelerator has done.
struct DeviceCalls {
  long waits = 0;           ///< calls that make the host wait for the device
  long device_to_host = 0;  ///< copies, including asynchronous ones
};

DeviceCalls device_calls();

inline DeviceCalls operator-(const DeviceCalls& a, const DeviceCalls& b) {
  return {.waits = a.waits - b.waits, .device_to_host = a.device_to_host - b.device_to_host};
}

}  // namespace hortator::test
