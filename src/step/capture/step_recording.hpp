#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

namespace hortator::step {

/// The host's work at each replay of a step that was recorded on the device. Objects that take part in the step
/// register their work while it is recorded.
class StepRecording {
 public:
  using Act = std::function<void()>;

  /// Registers work for before and after each replay, which runs in the order of registration.
  void before_replay(Act act) { before_.push_back(std::move(act)); }
  void after_replay(Act act) { after_.push_back(std::move(act)); }
  /// A number on `device` for recorded kernels to read. Before each replay it is set to value(). Do not read or write
  /// it otherwise.
  at::Tensor number(c10::Device device, std::function<double()> value);
  /// Adds a condition for the recording to be valid.
  void require(std::function<bool()> holds) { conditions_.push_back(std::move(holds)); }

  /// Whether all conditions hold.
  bool is_good() const;
  void begin_replay() const;
  void end_replay() const;

 private:
  std::vector<Act> before_;
  std::vector<Act> after_;
  std::vector<std::function<bool()>> conditions_;
};

}  // namespace hortator::step
