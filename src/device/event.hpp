#pragma once

#include <utility>

namespace hortator::device {

/// A place in a stream. Move-only; a moved-from one may only be destroyed.
class Event {
 public:
  explicit Event(void* native) : native_(native) {}  ///< owns a cudaEvent_t
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event(Event&& other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }

  bool is_reached() const;
  /// What the current stream is given from now on is done after this place; the calling thread goes on at once.
  void hold_current_stream() const;
  void* native() const { return native_; }

 private:
  void* native_;
};

}  // namespace hortator::device
