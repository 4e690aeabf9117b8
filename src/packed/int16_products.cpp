#include "packed/int16_products.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#ifdef __x86_64__
#if defined(__GNUC__) && !defined(__clang__)  // GCC 12 reports its own intrinsics
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

#include "packed/packing.hpp"

namespace hortator::packed {

#ifdef __x86_64__
namespace {

#define HORTATOR_INT16_TARGET [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,f16c")]]

constexpr std::int64_t block = 64, half_block = 32;
constexpr std::int64_t bytes_ahead = 1024;  // that are asked for before they are needed, also of the next rows
constexpr std::int64_t scales_ahead = 256;  // the same of scales
constexpr float largest_int16 = 32767;
constexpr float smallest_largest = 1e-33F;  // of a block that is not rounded to zeros: its factor is finite
constexpr int middle = 8;                   // of the numbers of int4

/// A few rows of inputs in 16 bits.
struct Int16Rows {
  std::vector<std::int16_t> shorts;  ///< [rows, inputs]; for numbers of 4 bits the even ones of a block come first
  std::vector<float> scales;         ///< [rows, blocks]
  std::vector<float> sums;           ///< [rows, groups], of the inputs of each group
};

std::vector<std::int32_t> groups_of_halves(const PackedLayout& layout) {
  std::vector<std::int32_t> groups(static_cast<std::size_t>(layout.inputs / half_block));
  for (std::size_t i = 0; i < groups.size(); ++i)
    groups[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * half_block / layout.group);
  return groups;
}

HORTATOR_INT16_TARGET void round_block(const PackedLayout& layout, const float* x, std::int16_t* shorts, float& scale,
                                       float* sums) {
  const __m512 parts[4] = {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16), _mm512_loadu_ps(x + 32),
                           _mm512_loadu_ps(x + 48)};
  sums[0] = _mm512_reduce_add_ps(parts[0] + parts[1]);
  sums[1] = _mm512_reduce_add_ps(parts[2] + parts[3]);
  if (!std::isfinite(sums[0] + sums[1])) {  // as it would be in float32: no number of 16 bits is NaN
    scale = sums[0] = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(shorts, block, std::int16_t{0});
    return;
  }
  const auto largest =
      _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(_mm512_abs_ps(parts[0]), _mm512_abs_ps(parts[1])),
                                         _mm512_max_ps(_mm512_abs_ps(parts[2]), _mm512_abs_ps(parts[3]))));
  scale = largest / largest_int16;
  const auto factor = _mm512_set1_ps(largest >= smallest_largest ? largest_int16 / largest : 0.0F);
  alignas(64) std::array<std::int16_t, block> whole{};
  for (std::size_t i = 0; i < 4; ++i) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(whole.data() + 16 * i),
                       _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(parts[i] * factor)));
  }
  const bool is_split = !layout.is_int8();
  for (std::size_t i = 0; i < block; ++i) shorts[is_split ? i / 2 + i % 2 * (block / 2) : i] = whole[i];
}

Int16Rows rounded(const PackedLayout& layout, const std::vector<std::int32_t>& group_of_half, const float* x,
                  std::int64_t rows) {
  const auto blocks = static_cast<std::size_t>(rows * layout.inputs / block);
  const auto halves = group_of_half.size();
  const auto groups = layout.format == WeightFormat::int8 ? 1 : static_cast<std::size_t>(layout.groups_of_row());
  Int16Rows all{.shorts = std::vector<std::int16_t>(blocks * block),
                .scales = std::vector<float>(blocks),
                .sums = std::vector<float>(static_cast<std::size_t>(rows) * groups)};
  for (std::size_t i = 0; i < blocks; ++i) {
    float sums[2];
    round_block(layout, x + i * block, all.shorts.data() + i * block, all.scales[i], sums);
    for (std::size_t half = 0; half < 2; ++half) {
      const auto group = layout.format == WeightFormat::int8 ? 0 : group_of_half[(2 * i + half) % halves];
      all.sums[2 * i / halves * groups + static_cast<std::size_t>(group)] += sums[half];
    }
  }
  return all;
}

struct Int16Product {
  const PackedLayout& layout;
  PackedBytes parts;
  const std::int32_t* group_of_half;  ///< of a row, for each half of a block
  const std::int16_t* shorts;
  const float* scales;
  const float* sums;  ///< as in Int16Rows
  float* y;           ///< [rows, outputs]
};

/// The sum of 64 products, as 16 partial sums. Two products of the largest numbers fit into 32 bits, four do
/// not.
template <bool are_large>
HORTATOR_INT16_TARGET inline __m512 block_product(__m512i first, __m512i second, const std::int16_t* shorts) {
  const auto zero = _mm512_setzero_si512();
  const auto one = _mm512_dpwssd_epi32(zero, first, _mm512_loadu_si512(shorts));
  const auto other = _mm512_loadu_si512(shorts + block / 2);
  if constexpr (!are_large) return _mm512_cvtepi32_ps(_mm512_dpwssd_epi32(one, second, other));
  return _mm512_add_ps(_mm512_cvtepi32_ps(one), _mm512_cvtepi32_ps(_mm512_dpwssd_epi32(zero, second, other)));
}

/// `has_groups`: int8_groups, whose groups are whole halves of blocks.
template <bool has_groups, std::int64_t rows>
HORTATOR_INT16_TARGET void multiply_bytes(const Int16Product& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, blocks = inputs / block;
  const auto groups = has_groups ? all.layout.groups_of_row() : 0;
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs;
    [[maybe_unused]] const auto* scales = all.parts.floats + output * groups;
    __m512 sums[rows] = {};
    for (std::int64_t i = 0; i < blocks; ++i) {
      const auto* of_block = numbers + i * block;
      __builtin_prefetch(of_block + bytes_ahead, 0, 2);
      const auto first = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block)));
      const auto second = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block) + 1));
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto* shorts = all.shorts + row * inputs + i * block;
        const auto of_x = _mm512_set1_ps(all.scales[row * blocks + i]);
        if constexpr (has_groups) {
          const auto zero = _mm512_setzero_si512();
          const auto one = _mm512_cvtepi32_ps(_mm512_dpwssd_epi32(zero, first, _mm512_loadu_si512(shorts)));
          const auto other =
              _mm512_cvtepi32_ps(_mm512_dpwssd_epi32(zero, second, _mm512_loadu_si512(shorts + half_block)));
          const auto of_halves = _mm512_fmadd_ps(one, _mm512_set1_ps(scales[all.group_of_half[2 * i]]),
                                                 other * _mm512_set1_ps(scales[all.group_of_half[2 * i + 1]]));
          sums[row] = _mm512_fmadd_ps(of_halves, of_x, sums[row]);
        } else {
          sums[row] = _mm512_fmadd_ps(block_product<false>(first, second, shorts), of_x, sums[row]);
        }
      }
    }
    const auto of_row = has_groups ? 1.0F : all.parts.floats[output] * int8_step;
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]) * of_row;
  }
}

/// The values of nf4 in 16 bits, for numbers of four bits in float_lanes of 16.
HORTATOR_INT16_TARGET inline __m512i nf4_in_int16() {
  alignas(64) std::array<std::int16_t, 32> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<std::int16_t>(std::nearbyint(nf4_values()[i % 16] * largest_int16));
  return _mm512_load_si512(table.data());
}

/// What the 16 partial sums of a block are multiplied by: its halves may be two groups.
HORTATOR_INT16_TARGET inline __m512 of_halves(float first, float second) {
  return _mm512_mask_blend_ps(0xFF00, _mm512_set1_ps(first), _mm512_set1_ps(second));
}

constexpr std::int64_t float_lanes = 16;

inline __mmask16 lanes_before(std::int64_t end) {
  return static_cast<__mmask16>(end >= float_lanes ? 0xFFFF : (1 << end) - 1);
}

/// The scales of a row of int4 or nf4 as floats, and what int4's numbers lack: their middle value.
struct RowScales {
  explicit RowScales(std::int64_t groups)
      : groups(groups), scales(static_cast<std::size_t>(padded(groups))), middles(scales.size()) {}
  HORTATOR_INT16_TARGET void take(const std::uint32_t* pairs) {
    for (std::int64_t first = 0; first < groups; first += float_lanes) {
      const auto both = _mm512_maskz_loadu_epi32(lanes_before(groups - first), pairs + first);
      const auto scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(both, 16)));
      const auto smallest = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(both));
      _mm512_storeu_ps(scales.data() + first, scale);  // whole: single ones are read back at once
      _mm512_storeu_ps(middles.data() + first, _mm512_fmadd_ps(scale, _mm512_set1_ps(middle), smallest));
    }
  }
  void take(const float* largest) {
    constexpr float step = 1 / largest_int16;
    for (std::int64_t i = 0; i < groups; ++i) scales[static_cast<std::size_t>(i)] = largest[i] * step;
  }
  static std::int64_t padded(std::int64_t groups) { return (groups + float_lanes - 1) / float_lanes * float_lanes; }

  std::int64_t groups;
  std::vector<float> scales, middles;
};

/// 16 partial sums of the products of two lists.
HORTATOR_INT16_TARGET inline __m512 products_of(const float* a, const float* b, std::int64_t count) {
  auto sum = _mm512_setzero_ps();
  for (std::int64_t first = 0; first < count; first += float_lanes) {
    const auto there = lanes_before(count - first);
    sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(there, a + first), _mm512_maskz_loadu_ps(there, b + first), sum);
  }
  return sum;
}

/// `has_halves`: groups that are not whole blocks, so that a block may have two.
template <bool is_nf4, bool has_halves, std::int64_t rows>
HORTATOR_INT16_TARGET void multiply_nibbles(const Int16Product& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, blocks = inputs / block, groups = all.layout.groups_of_row();
  const auto mask = _mm256_set1_epi8(15);
  const auto table = nf4_in_int16();
  RowScales of_row(groups);
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs / 2;
    __builtin_prefetch(all.parts.pairs + output * groups + scales_ahead, 0, 3);
    if constexpr (is_nf4) {
      of_row.take(all.parts.floats + output * groups);
    } else {
      of_row.take(all.parts.pairs + output * groups);
    }
    __m512 sums[rows] = {};
    for (std::int64_t i = 0; i < blocks; ++i) {
      const auto* of_block = numbers + i * block / 2;
      __builtin_prefetch(of_block + bytes_ahead, 0, 2);
      const auto bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block));
      auto even = _mm512_cvtepu8_epi16(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask));
      auto odd = _mm512_cvtepu8_epi16(_mm256_and_si256(bytes, mask));
      if constexpr (is_nf4) {
        even = _mm512_permutexvar_epi16(even, table);
        odd = _mm512_permutexvar_epi16(odd, table);
      } else {
        even = _mm512_sub_epi16(even, _mm512_set1_epi16(middle));  // both addends stay small
        odd = _mm512_sub_epi16(odd, _mm512_set1_epi16(middle));
      }
      const auto first = of_row.scales[static_cast<std::size_t>(all.group_of_half[2 * i])];
      auto scales = _mm512_set1_ps(first);
      if constexpr (has_halves)
        scales = of_halves(first, of_row.scales[static_cast<std::size_t>(all.group_of_half[2 * i + 1])]);
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto product = block_product<is_nf4>(even, odd, all.shorts + row * inputs + i * block);
        sums[row] = _mm512_fmadd_ps(product, scales * _mm512_set1_ps(all.scales[row * blocks + i]), sums[row]);
      }
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      if constexpr (!is_nf4) sums[row] += products_of(of_row.middles.data(), all.sums + row * groups, groups);
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]);
    }
  }
}

using MultiplyInt16 = void (*)(const Int16Product&, std::int64_t, std::int64_t);

template <std::int64_t rows>
MultiplyInt16 multiply_of_format(WeightFormat format, bool has_halves) {
  if (format == WeightFormat::int8) return multiply_bytes<false, rows>;
  if (format == WeightFormat::int8_groups) return multiply_bytes<true, rows>;
  if (format == WeightFormat::nf4)
    return has_halves ? multiply_nibbles<true, true, rows> : multiply_nibbles<true, false, rows>;
  return has_halves ? multiply_nibbles<false, true, rows> : multiply_nibbles<false, false, rows>;
}

}  // namespace

bool has_int16_product(const PackedLayout& layout) {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vnni");
  const bool has_blocks =
      layout.inputs % block == 0 && (layout.format == WeightFormat::int8 || layout.group % half_block == 0);
  return has && has_blocks && layout.has_whole_groups();
}

at::Tensor int16_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes) {
  const auto rows = x.size(0);
  auto y = at::empty({rows, layout.outputs}, x.options());
  const auto group_of_half = groups_of_halves(layout);
  const auto shorts = rounded(layout, group_of_half, x.const_data_ptr<float>(), rows);
  const Int16Product all{.layout = layout,
                         .parts = parts_of(layout, bytes),
                         .group_of_half = group_of_half.data(),
                         .shorts = shorts.shorts.data(),
                         .scales = shorts.scales.data(),
                         .sums = shorts.sums.data(),
                         .y = y.mutable_data_ptr<float>()};
  const bool has_halves = layout.group % block != 0;
  const auto multiply = rows == 1   ? multiply_of_format<1>(layout.format, has_halves)
                        : rows == 2 ? multiply_of_format<2>(layout.format, has_halves)
                        : rows == 3 ? multiply_of_format<3>(layout.format, has_halves)
                                    : multiply_of_format<4>(layout.format, has_halves);
  const auto grain = std::max<std::int64_t>(1, at::internal::GRAIN_SIZE / layout.inputs);
  at::parallel_for(0, layout.outputs, grain, [&](std::int64_t begin, std::int64_t end) { multiply(all, begin, end); });
  return y;
}
#else
bool has_int16_product(const PackedLayout&) { return false; }
at::Tensor int16_product(const PackedLayout&, const at::Tensor& x, const at::Tensor&) { return x; }
#endif

}  // namespace hortator::packed
