#pragma once

#include <c10/core/Stream.h>

#include "machine/device/event.hpp"

/// Only in builds with CUDA: nobody hands work to a device where there is none.
namespace hortator::machine {

/// A queue of a device's work beside the one that the program is using (its "current stream"). It is one of LibTorch's
/// own streams, which live as long as the process: the memory cache keeps blocks that belong to a stream for as long.
/// Nothing here waits for the device, and whatever device the calling thread is using, it is using afterwards.
class Stream {
 public:
  /// Of high priority: communication that starts late holds up every rank.
  explicit Stream(int device);

  /// What this stream is given from now on is done after all that its device's current stream was given so far.
  void follow_current() const;
  /// Where this stream has come to: reached when all that it was given so far is done.
  Event mark() const;

  /// For c10::StreamGuard: operations go here meanwhile, and the memory that they allocate belongs here.
  c10::Stream get() const { return stream_; }
  void* native() const;  ///< cudaStream_t

 private:
  c10::Stream stream_;
};

/// Waits for the device, as cudaFree does: only for memory that is about to go away, never in a training step.
void wait_until_idle(int device);

}  // namespace hortator::machine
