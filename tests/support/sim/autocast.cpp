// Autocast, with LibTorch's own lists of operators.
#include <ATen/autocast_mode.h>

namespace at::autocast {
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define HORTATOR_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define HORTATOR_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define HORTATOR_SET_TYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define HORTATOR_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(HORTATOR_LOWER)
  AT_FORALL_FP32(HORTATOR_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(HORTATOR_SET_TYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(HORTATOR_PROMOTE)
}

}  // namespace
}  // namespace at::autocast
