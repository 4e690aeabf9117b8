#include "packed/int16_products.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "packed/packing.hpp"

namespace hortator::packed {

#ifdef __x86_64__
namespace {

#define HORTATOR_INT16_TARGET [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")]]

constexpr std::int64_t block = 64;
constexpr std::int64_t bytes_ahead = 1024;  // that are asked for before they are needed, also of the next rows
constexpr float largest_int16 = 32767;
constexpr int middle = 8;  // of the numbers of int4

/// A few rows of inputs in 16 bits.
struct Int16Rows {
  std::vector<std::int16_t> shorts;  ///< [rows, inputs]; for numbers of 4 bits the even ones of a block come first
  std::vector<float> scales;         ///< [rows, blocks]
  std::vector<float> sums;           ///< [rows, blocks], of the inputs themselves
};

void round_block(const PackedLayout& layout, const float* x, std::int16_t* shorts, float& scale, float& sum) {
  float largest = 0;
  sum = 0;
  for (std::int64_t i = 0; i < block; ++i) {
    largest = std::max(largest, std::abs(x[i]));
    sum += x[i];
  }
  if (!std::isfinite(sum)) {  // as it would be in float32: no number of 16 bits is NaN
    scale = sum = std::numeric_limits<float>::quiet_NaN();
    return std::fill_n(shorts, block, std::int16_t{0}), void();
  }
  scale = largest / largest_int16;
  const auto factor = scale > 0 ? largest_int16 / largest : 0.0F;
  const bool is_split = layout.format != WeightFormat::int8;
  for (std::int64_t i = 0; i < block; ++i) {
    const auto at = is_split ? i / 2 + i % 2 * (block / 2) : i;
    shorts[at] = static_cast<std::int16_t>(std::nearbyint(x[i] * factor));
  }
}

Int16Rows rounded(const PackedLayout& layout, const float* x, std::int64_t rows) {
  const auto blocks = static_cast<std::size_t>(rows * layout.inputs / block);
  Int16Rows all{.shorts = std::vector<std::int16_t>(blocks * block),
                .scales = std::vector<float>(blocks),
                .sums = std::vector<float>(blocks)};
  for (std::size_t i = 0; i < blocks; ++i)
    round_block(layout, x + i * block, all.shorts.data() + i * block, all.scales[i], all.sums[i]);
  return all;
}

struct Int16Product {
  const PackedLayout& layout;
  PackedBytes parts;
  const std::int16_t* shorts;
  const float* scales;
  const float* sums;
  float* y;  ///< [rows, outputs]
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

template <std::int64_t rows>
HORTATOR_INT16_TARGET void multiply_bytes(const Int16Product& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, blocks = inputs / block;
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs;
    __m512 sums[rows] = {};
    for (std::int64_t i = 0; i < blocks; ++i) {
      const auto* of_block = numbers + i * block;
      __builtin_prefetch(of_block + bytes_ahead, 0, 2);
      const auto first = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block)));
      const auto second = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block) + 1));
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto product = block_product<false>(first, second, all.shorts + row * inputs + i * block);
        sums[row] = _mm512_fmadd_ps(product, _mm512_set1_ps(all.scales[row * blocks + i]), sums[row]);
      }
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]) * all.parts.floats[output] * int8_step;
  }
}

/// The values of nf4 in 16 bits, for numbers of four bits in lanes of 16.
HORTATOR_INT16_TARGET inline __m512i nf4_in_int16() {
  alignas(64) std::array<std::int16_t, 32> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<std::int16_t>(std::nearbyint(nf4_values()[i % 16] * largest_int16));
  return _mm512_load_si512(table.data());
}

template <bool is_nf4, std::int64_t rows>
HORTATOR_INT16_TARGET void multiply_nibbles(const Int16Product& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, blocks = inputs / block, group = all.layout.group;
  const auto mask = _mm256_set1_epi8(15);
  const auto table = nf4_in_int16();
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs / 2;
    __m512 sums[rows] = {};
    float smallest_sums[rows] = {};
    for (std::int64_t i = 0; i < blocks; ++i) {
      const auto* of_block = numbers + i * block / 2;
      __builtin_prefetch(of_block + bytes_ahead, 0, 2);
      const auto bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block));
      auto even = _mm512_cvtepu8_epi16(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask));
      auto odd = _mm512_cvtepu8_epi16(_mm256_and_si256(bytes, mask));
      const auto number = (output * inputs + i * block) / group;
      float scale = 0, smallest = 0;
      if constexpr (is_nf4) {
        even = _mm512_permutexvar_epi16(even, table);
        odd = _mm512_permutexvar_epi16(odd, table);
        scale = all.parts.floats[number] / largest_int16;
      } else {
        const auto pair = all.parts.pairs[number];
        scale = std::bit_cast<float>(pair & 0xFFFF0000U);
        smallest = std::bit_cast<float>(pair << 16U) + middle * scale;
        even = _mm512_sub_epi16(even, _mm512_set1_epi16(middle));  // both addends stay small
        odd = _mm512_sub_epi16(odd, _mm512_set1_epi16(middle));
      }
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto product = block_product<is_nf4>(even, odd, all.shorts + row * inputs + i * block);
        sums[row] = _mm512_fmadd_ps(product, _mm512_set1_ps(scale * all.scales[row * blocks + i]), sums[row]);
        if constexpr (!is_nf4) smallest_sums[row] += smallest * all.sums[row * blocks + i];
      }
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]) + smallest_sums[row];
  }
}

using MultiplyInt16 = void (*)(const Int16Product&, std::int64_t, std::int64_t);

template <std::int64_t rows>
MultiplyInt16 multiply_of_format(WeightFormat format) {
  if (format == WeightFormat::int8) return multiply_bytes<rows>;
  return format == WeightFormat::nf4 ? multiply_nibbles<true, rows> : multiply_nibbles<false, rows>;
}

}  // namespace

bool has_int16_product(const PackedLayout& layout) {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vnni");
  const bool has_blocks =
      layout.inputs % block == 0 && (layout.format == WeightFormat::int8 || layout.group % block == 0);
  return has && has_blocks && layout.has_whole_groups();
}

at::Tensor int16_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes) {
  const auto rows = x.size(0);
  auto y = at::empty({rows, layout.outputs}, x.options());
  const auto shorts = rounded(layout, x.const_data_ptr<float>(), rows);
  const Int16Product all{.layout = layout,
                         .parts = parts_of(layout, bytes),
                         .shorts = shorts.shorts.data(),
                         .scales = shorts.scales.data(),
                         .sums = shorts.sums.data(),
                         .y = y.mutable_data_ptr<float>()};
  const auto multiply = rows == 1   ? multiply_of_format<1>(layout.format)
                        : rows == 2 ? multiply_of_format<2>(layout.format)
                        : rows == 3 ? multiply_of_format<3>(layout.format)
                                    : multiply_of_format<4>(layout.format);
  const auto grain = std::max<std::int64_t>(1, at::internal::GRAIN_SIZE / layout.inputs);
  at::parallel_for(0, layout.outputs, grain, [&](std::int64_t begin, std::int64_t end) { multiply(all, begin, end); });
  return y;
}
#else
bool has_int16_product(const PackedLayout&) { return false; }
at::Tensor int16_product(const PackedLayout&, const at::Tensor& x, const at::Tensor&) { return x; }
#endif

}  // namespace hortator::packed
