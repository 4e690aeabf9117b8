#pragma once

#include <hortator/error.hpp>
#include <string>

namespace hortator::step {

class StepRecording;

/// The life of what one Accelerator prepared. Handles share it and ask it before they act.
class Session {
 public:
  void end() { alive_ = false; }

  /// While a step is recorded: where handles say what they do in it. Null otherwise.
  StepRecording* recording() const { return recording_; }
  void record_into(StepRecording* recording) { recording_ = recording; }
  /// For what is done by the host alone, and would be done only once.
  void refuse_in_recording(const std::string& deed) const {
    if (recording_ == nullptr) return;
    throw UsageError({.what = deed + " within a step that is recorded (accelerator.capture)",
                      .why = "the device repeats it without the host",
                      .hint = "do it after the step"});
  }

  void check_alive(const std::string& handle) const {
    if (alive_) return;
    throw UsageError({.what = "a prepared " + handle + " was used after its Accelerator had gone or had freed it",
                      .why = "its communicators and gradient buckets no longer exist",
                      .hint = "keep the Accelerator alive for as long as its handles, or prepare again"});
  }

 private:
  bool alive_ = true;
  StepRecording* recording_ = nullptr;
};

}  // namespace hortator::step
