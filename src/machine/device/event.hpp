#pragma once

#include <utility>

namespace hortator::machine {

/// A position in a stream. Move-only; a moved-from event may only be destroyed.
class Event {
 public:
  Event(void* native, int device) : native_(native), device_(device) {}  ///< owns a cudaEvent_t of that device
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event(Event&& other) noexcept : native_(std::exchange(other.native_, nullptr)), device_(other.device_) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(native_, other.native_);
    std::swap(device_, other.device_);
    return *this;
  }

  bool is_reached() const;
  /// Makes later work of the current stream of its device wait for this position; the calling thread does not wait.
  void hold_current_stream() const;
  void* native() const { return native_; }

 private:
  void* native_;
  int device_;
};

}  // namespace hortator::machine
