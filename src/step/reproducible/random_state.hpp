#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <utility>
#include <vector>

namespace hortator::step {

/// Where the default random number generators of some devices stand, to be put there again. The CPU's is always among
/// them.
class RandomState {
 public:
  static RandomState current(const std::vector<at::Tensor>& on_devices_of);
  /// Of the same devices, as they stand now.
  RandomState again() const;
  void apply() const;

 private:
  std::vector<std::pair<c10::Device, at::Tensor>> states_;
};

/// From its construction to its end random numbers are drawn as from `state`; then they go on as if nothing was drawn.
class RandomScope {
 public:
  explicit RandomScope(const RandomState& state) : before_(state.again()) { state.apply(); }
  ~RandomScope() { before_.apply(); }
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  RandomState before_;
};

}  // namespace hortator::step
