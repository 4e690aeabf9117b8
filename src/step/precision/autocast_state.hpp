#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <array>

namespace hortator::step {

/// What autocast does on this thread, to be done again later, on this thread or another.
class AutocastState {
 public:
  static AutocastState current();
  void apply() const;

 private:
  struct OfDevice {
    c10::DeviceType device;
    bool enabled;
    c10::ScalarType type;
  };
  std::array<OfDevice, 2> devices_;
  bool cache_;
};

/// From its construction to its end this thread casts as `state` says. Casts of parameters that are kept for reuse
/// belong to the outermost such scope.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState before_ = AutocastState::current();
};

}  // namespace hortator::step
