#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <utility>

namespace hortator::machine {

/// A position in a stream. Copies are the same position.
class Event {
 public:
  explicit Event(std::shared_ptr<const c10::Event> event) : event_(std::move(event)) {}

  bool is_reached() const;
  /// Makes later work of the current stream of its device wait for this position; the calling thread does not wait.
  void hold_current_stream() const;

 private:
  std::shared_ptr<const c10::Event> event_;
};

/// A stream beside the program's current one. It is one of LibTorch's streams, which live as long as the process: the
/// memory cache keeps the blocks of a stream that long. No member waits for the device or changes the current device of
/// the calling thread.
class Stream {
 public:
  /// Makes a stream of high priority: communication that starts late delays every rank.
  explicit Stream(c10::Device device);

  /// Makes later work of this stream wait for the earlier work of its device's current stream.
  void follow_current() const;
  /// An event that is reached when all earlier work of this stream is done.
  Event mark() const;

  /// For c10::StreamGuard: operations run on this stream, and memory that they allocate belongs to it.
  c10::Stream get() const { return stream_; }
  void* native() const;  ///< the vendor's handle, such as cudaStream_t

 private:
  c10::Stream stream_;
};

/// The stream of a vendor's handle, such as a cudaStream_t, that other code has made and keeps; null: the default
/// stream.
c10::Stream stream_of_native(void* native, c10::Device device);

/// Makes later work of the stream `then` wait for the earlier work of `first`; the calling thread does not wait.
void order(const c10::Stream& first, const c10::Stream& then);

/// Waits for the device, as cudaFree does. Only before memory is released, never in a training step.
void wait_until_idle(c10::Device device);

}  // namespace hortator::machine
