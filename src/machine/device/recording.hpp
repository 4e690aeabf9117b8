#pragma once

namespace hortator::machine {

/// While it lives, work for the device is recorded for a Graph instead of done. Made where the recording begins. Work
/// that cannot be recorded asks is_recording() and throws. Callable from any thread.
class RecordingMark {
 public:
  RecordingMark();
  ~RecordingMark();
  RecordingMark(const RecordingMark&) = delete;
  RecordingMark& operator=(const RecordingMark&) = delete;
};

bool is_recording();

}  // namespace hortator::machine
