#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace hortator::parallel {

/// While it lives, calls back each time that backward has accumulated a parameter's gradient. The parameter may be
/// frozen when the hook is made. A parameter has one slot for such a callback: the user's callback is still called,
/// before ours; another GradientHook that lives is an error.
class GradientHook {
 public:
  GradientHook(const at::Tensor& parameter, std::function<void()> on_gradient);
  ~GradientHook();
  GradientHook(GradientHook&&) = default;
  GradientHook& operator=(GradientHook&&) = default;

 private:
  // The slot belongs to the parameter, which may outlive this object; destroying this disarms it without touching the
  // user's object.
  std::shared_ptr<std::function<void()>> armed_;
};

}  // namespace hortator::parallel
