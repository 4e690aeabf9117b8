#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace hortator::parallel {

/// Calls back each time that backward has accumulated a parameter's gradient, for as long as it lives. The parameter
/// may be frozen when it is made. A parameter has one slot for such a call: what the user had put there is still
/// called, before ours; another hook of ours that lives is an error.
class GradientHook {
 public:
  GradientHook(const at::Tensor& parameter, std::function<void()> on_gradient);
  ~GradientHook();
  GradientHook(GradientHook&&) = default;
  GradientHook& operator=(GradientHook&&) = default;

 private:
  // The slot belongs to the parameter, which may outlive us; emptying this disarms it without touching the user's
  // object.
  std::shared_ptr<std::function<void()>> armed_;
};

}  // namespace hortator::parallel
