#pragma once

#include <hortator/error.hpp>
#include <string>

namespace hortator::step {

class StepRecording;

/// The lifetime of the objects that one Accelerator prepared. Handles share it, and check it before each call.
class AcceleratorSession {
 public:
  void end() { alive_ = false; }
  bool is_alive() const { return alive_; }

  /// While a step is recorded, the recording in which handles register their work. Null otherwise.
  StepRecording* recording() const { return recording_; }
  void record_into(StepRecording* recording) { recording_ = recording; }
  /// Throws while a step is recorded. For work that only the host does, which replays would not repeat.
  void refuse_in_recording(const std::string& action) const {
    if (recording_ == nullptr) return;
    throw UsageError({.what = action + " within a step that is recorded (accelerator.capture)",
                      .why = "the device replays the step without the host",
                      .hint = "do it after the step"});
  }

  void check_alive(const std::string& handle) const {
    if (alive_) return;
    throw UsageError({.what = "A prepared " + handle + " was used after its Accelerator was destroyed or had freed it",
                      .why = "its communicators and gradient buckets no longer exist",
                      .hint = "keep the Accelerator alive for as long as its handles, or prepare again"});
  }

 private:
  bool alive_ = true;
  StepRecording* recording_ = nullptr;
};

}  // namespace hortator::step
