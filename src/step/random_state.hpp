#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <utility>
#include <vector>

namespace hortator::step {

/// Saved states of the default random number generators of the CPU and some devices.
class RandomState {
 public:
  /// The present states of the CPU, and of the accelerators of these tensors.
  static RandomState current(const std::vector<at::Tensor>& on_devices_of);
  /// The present states of the same devices.
  RandomState refreshed() const;
  /// Restores the saved states.
  void apply() const;

 private:
  std::vector<std::pair<c10::Device, at::Tensor>> states_;
};

/// While it lives, random numbers are drawn from `state`. Its end restores the generators as they were before.
class RandomScope {
 public:
  explicit RandomScope(const RandomState& state) : before_(state.refreshed()) { state.apply(); }
  ~RandomScope() { before_.apply(); }
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  RandomState before_;
};

}  // namespace hortator::step
