#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace hortator::step {

/// The host's work at each replay of a step that was recorded on the device. Objects that take part in the step
/// register their work while it is recorded.
class StepRecording {
 public:
  using Act = std::function<void()>;

  static constexpr std::int64_t max_numbers = 4096;

  /// Make it before the recording begins. Memory that is allocated while it is under way belongs to it, and other
  /// recorded kernels use the same memory for their own results at each replay.
  explicit StepRecording(c10::Device device);

  /// Registers work for before and after each replay, which runs in the order of registration.
  void before_replay(Act act) { before_.push_back(std::move(act)); }
  void after_replay(Act act) { after_.push_back(std::move(act)); }
  /// A number on `device` for recorded kernels to read. Before each replay it is set to value(). Do not read or write
  /// it otherwise. Throws for another device than the recording's, and when there are more than max_numbers.
  at::Tensor number(c10::Device device, std::function<double()> value);
  /// Adds a condition for the recording to be valid.
  void require(std::function<bool()> holds) { conditions_.push_back(std::move(holds)); }

  /// Whether all conditions hold.
  bool is_good() const;
  void begin_replay() const;
  void end_replay() const;

 private:
  at::Tensor numbers_;
  std::int64_t used_numbers_ = 0;
  std::vector<Act> before_;
  std::vector<Act> after_;
  std::vector<std::function<bool()>> conditions_;
};

}  // namespace hortator::step
