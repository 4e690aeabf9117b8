#pragma once

#include <ATen/Context.h>

namespace hortator::simulation {

/// While it lives, attention is computed by matrix products and a softmax: LibTorch's fused kernels have a backward
/// pass that cannot be differentiated again.
class PlainAttention {
 public:
  PlainAttention() { set(false, false, false, true); }
  ~PlainAttention() { set(flash_, efficient_, cudnn_, math_); }
  PlainAttention(const PlainAttention&) = delete;
  PlainAttention& operator=(const PlainAttention&) = delete;

 private:
  static void set(bool flash, bool efficient, bool cudnn, bool math) {
    auto& context = at::globalContext();
    context.setSDPUseFlash(flash);
    context.setSDPUseMemEfficient(efficient);
    context.setSDPUseCuDNN(cudnn);
    context.setSDPUseMath(math);
  }

  bool flash_ = at::globalContext().userEnabledFlashSDP();
  bool efficient_ = at::globalContext().userEnabledMemEfficientSDP();
  bool cudnn_ = at::globalContext().userEnabledCuDNNSDP();
  bool math_ = at::globalContext().userEnabledMathSDP();
};

}  // namespace hortator::simulation
