#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

namespace hortator::step {

/// What a step that was recorded on the device does on the host each time that it is run again: who takes part in it
/// says so while it is recorded.
class StepRecording {
 public:
  using Act = std::function<void()>;

  /// Done before each replay, and after it, in the order of these calls.
  void before_replay(Act act) { before_.push_back(std::move(act)); }
  void after_replay(Act act) { after_.push_back(std::move(act)); }
  /// A number on `device` that the recorded work reads: before each replay it becomes what `value` says then. Not to be
  /// read or written otherwise.
  at::Tensor number(c10::Device device, std::function<double()> value);
  /// The recording is good as long as `holds`.
  void require(std::function<bool()> holds) { conditions_.push_back(std::move(holds)); }

  bool is_good() const;
  void begin_replay() const;
  void end_replay() const;

 private:
  std::vector<Act> before_;
  std::vector<Act> after_;
  std::vector<std::function<bool()>> conditions_;
};

}  // namespace hortator::step
