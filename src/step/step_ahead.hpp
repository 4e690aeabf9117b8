#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "step/precision/late_verdict.hpp"

namespace hortator::step {

/// An optimizer's step that is queued on the device before the host knows whether it must be skipped. The kernels read
/// the verdict on the device and change nothing on an overflow. The host takes back its step counts when it reads the
/// verdict.
class StepAhead {
 public:
  explicit StepAhead(std::shared_ptr<LateVerdict> verdict) : verdict_(std::move(verdict)) {}

  const std::shared_ptr<LateVerdict>& verdict() const { return verdict_; }
  /// The overflow flag that kernels on `device` read.
  at::Tensor not_finite_on(c10::Device device) const { return verdict_->not_finite().to(device); }

  void when_skipped(std::function<void()> take_back) { take_back_.push_back(std::move(take_back)); }
  void take_back() const {
    for (const auto& act : take_back_) act();
  }

 private:
  std::shared_ptr<LateVerdict> verdict_;
  std::vector<std::function<void()>> take_back_;
};

}  // namespace hortator::step
