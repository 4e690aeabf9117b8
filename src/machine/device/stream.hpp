#pragma once

#include <c10/core/Stream.h>

#include "machine/device/event.hpp"

/// Only in builds with CUDA.
namespace hortator::machine {

/// A stream beside the program's current one. It is one of LibTorch's streams, which live as long as the process: the
/// memory cache keeps the blocks of a stream that long. No member waits for the device or changes the current device of
/// the calling thread.
class Stream {
 public:
  /// Makes a stream of high priority: communication that starts late delays every rank.
  explicit Stream(int device);

  /// Makes later work of this stream wait for the earlier work of its device's current stream.
  void follow_current() const;
  /// An event that is reached when all earlier work of this stream is done.
  Event mark() const;

  /// For c10::StreamGuard: operations run on this stream, and memory that they allocate belongs to it.
  c10::Stream get() const { return stream_; }
  void* native() const;  ///< cudaStream_t

 private:
  c10::Stream stream_;
};

/// Waits for the device, as cudaFree does. Only before memory is released, never in a training step.
void wait_until_idle(int device);

}  // namespace hortator::machine
