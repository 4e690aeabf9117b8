#include "packed/formats/float_product.hpp"

#include <ATen/ops/empty.h>

namespace hortator::packed {

#ifdef __x86_64__
namespace {

bool has_instructions() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq");  // all of these have F16C
  return has;
}

/// Groups are read 16 numbers at a time; those of files may be shorter.
bool can_multiply(const PackedLayout& layout) {
  const bool has_lanes = !layout.numbers().has_groups() || layout.group % lanes == 0;
  return has_instructions() && has_lanes && layout.has_whole_groups();
}

}  // namespace

at::Tensor float_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes,
                         const FloatKernels& kernels, bool needs_sums) {
  if (!can_multiply(layout)) return {};
  const auto rows = x.size(0);
  auto y = at::empty({rows, layout.outputs}, x.options());
  const auto sums = needs_sums ? x.view({rows, -1, layout.group}).sum(-1) : at::Tensor();
  const FloatProduct all{.layout = layout,
                         .parts = parts_of(layout, bytes),
                         .x = x.const_data_ptr<float>(),
                         .x_sums = sums.defined() ? sums.const_data_ptr<float>() : nullptr,
                         .y = y.mutable_data_ptr<float>()};
  const auto multiply = kernels[static_cast<std::size_t>(rows - 1)];
  over_outputs(layout, [&](std::int64_t begin, std::int64_t end) { multiply(all, begin, end); });
  return y;
}
#else
at::Tensor float_product(const PackedLayout&, const at::Tensor&, const at::Tensor&, const FloatKernels&, bool) {
  return {};
}
#endif

}  // namespace hortator::packed
