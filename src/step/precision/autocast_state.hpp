#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <vector>

namespace hortator::step {

/// The autocast settings of this thread for all types of devices, to be applied later, on this thread or another.
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
  std::vector<OfDevice> devices_;
  bool cache_;
};

/// While it lives, this thread has the autocast settings `state`. The outermost such scope clears the cache of cast
/// parameters at its end.
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
