#pragma once

#include <c10/core/Stream.h>

#include "support/sim/sim.hpp"

namespace hortator::sim {

/// The calling thread's current device, and its current stream on each device. As with CUDA, choosing another device
/// makes a context on it.
int current_device();
void set_current_device(int device);
/// Returns the device before. A negative device changes nothing.
int exchange_current_device(int device);
/// Makes no context: LibTorch's guards end so.
void return_to_device(int device);
int current_stream(int device);
void set_current_stream(int stream);

void make_context(int device);
bool has_context(int device);

c10::Stream stream_of(int stream);
int number_of(const c10::Stream& stream);

class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : before_(exchange_current_device(device)) {}
  ~CurrentDevice() { return_to_device(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_;
};

}  // namespace hortator::sim
