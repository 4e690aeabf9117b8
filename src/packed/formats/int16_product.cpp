#include "packed/formats/int16_product.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hortator::packed {

#ifdef __x86_64__
namespace {

/// A few rows of inputs in 16 bits.
struct Int16Rows {
  std::vector<std::int16_t> shorts;  ///< [rows, inputs]
  std::vector<float> scales;         ///< [rows, blocks]
};

std::vector<std::int32_t> groups_of_halves(const PackedLayout& layout) {
  std::vector<std::int32_t> groups(static_cast<std::size_t>(layout.inputs / int16_half));
  for (std::size_t i = 0; i < groups.size(); ++i)
    groups[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * int16_half / layout.group);
  return groups;
}

HORTATOR_INT16_TARGET void round_block(BlockOrder order, const float* x, std::int16_t* shorts, float& scale) {
  const __m512 parts[4] = {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16), _mm512_loadu_ps(x + 32),
                           _mm512_loadu_ps(x + 48)};
  const auto sum = _mm512_reduce_add_ps(parts[0] + parts[1] + parts[2] + parts[3]);
  if (!std::isfinite(sum)) {  // as it would be in float32: no number of 16 bits is NaN
    scale = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(shorts, int16_block, std::int16_t{0});
    return;
  }
  const auto largest =
      _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(_mm512_abs_ps(parts[0]), _mm512_abs_ps(parts[1])),
                                         _mm512_max_ps(_mm512_abs_ps(parts[2]), _mm512_abs_ps(parts[3]))));
  scale = largest / largest_int16;
  const auto factor = _mm512_set1_ps(largest >= smallest_largest ? largest_int16 / largest : 0.0F);
  alignas(64) std::array<std::int16_t, int16_block> whole{};
  for (std::size_t i = 0; i < 4; ++i) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(whole.data() + 16 * i),
                       _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(parts[i] * factor)));
  }
  const bool is_split = order == BlockOrder::even_first;
  for (std::size_t i = 0; i < int16_block; ++i) shorts[is_split ? i / 2 + i % 2 * (int16_block / 2) : i] = whole[i];
}

Int16Rows rounded(BlockOrder order, const float* x, std::int64_t count) {
  const auto blocks = static_cast<std::size_t>(count / int16_block);
  Int16Rows all{.shorts = std::vector<std::int16_t>(blocks * int16_block), .scales = std::vector<float>(blocks)};
  for (std::size_t i = 0; i < blocks; ++i)
    round_block(order, x + i * int16_block, all.shorts.data() + i * int16_block, all.scales[i]);
  return all;
}

}  // namespace

bool has_integer_instructions() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vnni");
  return has;
}

at::Tensor int16_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes, BlockOrder order,
                         const Int16Kernels& kernels) {
  const bool has_halves = !layout.numbers().has_groups() || layout.group % int16_half == 0;
  if (!has_integer_instructions() || layout.inputs % int16_block != 0 || !has_halves || !layout.has_whole_groups())
    return {};
  const auto rows = x.size(0);
  auto y = at::empty({rows, layout.outputs}, x.options());
  const auto group_of_half = groups_of_halves(layout);
  const auto inputs = rounded(order, x.const_data_ptr<float>(), rows * layout.inputs);
  const Int16Product all{.layout = layout,
                         .parts = parts_of(layout, bytes),
                         .group_of_half = group_of_half.data(),
                         .shorts = inputs.shorts.data(),
                         .scales = inputs.scales.data(),
                         .y = y.mutable_data_ptr<float>()};
  const auto multiply = kernels[static_cast<std::size_t>(rows - 1)];
  over_outputs(layout, [&](std::int64_t begin, std::int64_t end) { multiply(all, begin, end); });
  return y;
}
#else
bool has_integer_instructions() { return false; }
at::Tensor int16_product(const PackedLayout&, const at::Tensor&, const at::Tensor&, BlockOrder, const Int16Kernels&) {
  return {};
}
#endif

}  // namespace hortator::packed
