// QLoRA's 16 values for normally distributed weights, and the largest absolute value of each group: bitsandbytes'
// quantize_4bit.
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "packed/formats/int16_product.hpp"
#include "packed/formats/nibbles.hpp"

namespace hortator::packed {
namespace {

constexpr std::array<float, 16> values_of_nf4 = {-1.0F,
                                                 -0.6961928009986877F,
                                                 -0.5250730514526367F,
                                                 -0.39491748809814453F,
                                                 -0.28444138169288635F,
                                                 -0.18477343022823334F,
                                                 -0.09105003625154495F,
                                                 0.0F,
                                                 0.07958029955625534F,
                                                 0.16093020141124725F,
                                                 0.24611230194568634F,
                                                 0.33791524171829224F,
                                                 0.44070982933044434F,
                                                 0.5626170039176941F,
                                                 0.7229568362236023F,
                                                 1.0F};

unsigned nearest_nf4(float value) {
  unsigned number = 0;
  while (number < values_of_nf4.size() - 1 && value > (values_of_nf4[number] + values_of_nf4[number + 1]) / 2) ++number;
  return number;
}

/// As bitsandbytes: a last group that is shorter is divided, whole ones are multiplied by the reciprocal.
void pack_nf4_group(const float* values, std::int64_t count, bool is_whole, std::int64_t first, float& scale,
                    std::uint8_t* numbers) {
  constexpr float smallest = 1e-38F;
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(values[i]));
  const auto divisor = std::max(largest, smallest);
  scale = is_whole ? largest : divisor;
  const float factor = 1.0F / divisor;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto scaled = is_whole ? values[i] * factor : values[i] / divisor;
    put_nibble(numbers, first + i, nearest_nf4(std::clamp(scaled, -1.0F, 1.0F)));
  }
}

#ifdef __x86_64__
template <std::int64_t rows>
HORTATOR_PACKED_TARGET void multiply_nf4_floats(const FloatProduct& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, group = all.layout.group;
  const auto table = _mm512_loadu_ps(values_of_nf4.data());
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs / 2;
    const auto* scales = all.parts.floats + output * inputs / group;
    __m512 sums[rows] = {};
    for (std::int64_t first = 0; first < inputs; first += group) {
      __builtin_prefetch(numbers + first / 2 + bytes_ahead, 0, 2);
      __m512 parts[rows] = {};
      for (auto at = first; at < first + group; at += lanes) {
        const auto values = _mm512_permutexvar_ps(nibbles_in_lanes(numbers + at / 2), table);
        for (std::int64_t row = 0; row < rows; ++row)
          parts[row] = _mm512_fmadd_ps(values, _mm512_loadu_ps(all.x + row * inputs + at), parts[row]);
      }
      const auto scale = _mm512_set1_ps(scales[first / group]);
      for (std::int64_t row = 0; row < rows; ++row) sums[row] = _mm512_fmadd_ps(parts[row], scale, sums[row]);
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]);
  }
}

/// The values in 16 bits, for numbers of four bits in lanes of 16.
HORTATOR_INT16_TARGET inline __m512i table_in_int16() {
  alignas(64) std::array<std::int16_t, 32> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<std::int16_t>(std::nearbyint(values_of_nf4[i % 16] * largest_int16));
  return _mm512_load_si512(table.data());
}

template <std::int64_t rows>
HORTATOR_INT16_TARGET void multiply_nf4_shorts(const Int16Product& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, blocks = inputs / int16_block, groups = all.layout.groups_of_row();
  const auto mask = _mm256_set1_epi8(15);
  const auto table = table_in_int16();
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs / 2;
    const auto* scales = all.parts.floats + output * groups;
    __m512 sums[rows] = {};
    for (std::int64_t i = 0; i < blocks; ++i) {
      const auto* of_block = numbers + i * int16_block / 2;
      __builtin_prefetch(of_block + bytes_ahead, 0, 2);
      const auto bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block));
      const auto high = _mm512_cvtepu8_epi16(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask));
      const auto low = _mm512_cvtepu8_epi16(_mm256_and_si256(bytes, mask));
      const auto even = _mm512_permutexvar_epi16(high, table), odd = _mm512_permutexvar_epi16(low, table);
      // the halves of a block may be two groups
      const auto scale = _mm512_mask_blend_ps(0xFF00, _mm512_set1_ps(scales[all.group_of_half[2 * i]]),
                                              _mm512_set1_ps(scales[all.group_of_half[2 * i + 1]]));
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto* shorts = all.shorts + row * inputs + i * int16_block;
        // two products of the largest numbers fit into 32 bits, four do not
        const auto product = half_product(even, shorts) + half_product(odd, shorts + int16_half);
        sums[row] = _mm512_fmadd_ps(product, scale * _mm512_set1_ps(all.scales[row * blocks + i]), sums[row]);
      }
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]) * (1 / largest_int16);
  }
}

constexpr FloatKernels nf4_float_kernels = {multiply_nf4_floats<1>, multiply_nf4_floats<2>, multiply_nf4_floats<3>,
                                            multiply_nf4_floats<4>};
constexpr Int16Kernels nf4_int16_kernels = {multiply_nf4_shorts<1>, multiply_nf4_shorts<2>, multiply_nf4_shorts<3>,
                                            multiply_nf4_shorts<4>};
#else
constexpr FloatKernels nf4_float_kernels = {};
constexpr Int16Kernels nf4_int16_kernels = {};
#endif

class Nf4 final : public NumberFormat {
 public:
  const char* name() const override { return "nf4"; }
  bool has_bytes() const override { return false; }
  bool is_flat() const override { return true; }
  StoredFormat stored() const override {
    return {.state = ".quant_state.bitsandbytes__nf4",
            .values = values_of_nf4.data(),
            .is_of_bitsandbytes = true,
            .bitsandbytes = "load_in_4bit"};
  }

  void pack(const PackedLayout& layout, const float* values, std::uint8_t* bytes) const override {
    auto* scales = reinterpret_cast<float*>(bytes);
    auto* numbers = bytes + layout.scale_bytes();
    const auto group = layout.group;
    // groups of an odd number of values do not exist, so that each begins at a byte
    at::parallel_for(0, layout.scales(), 256, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        const auto first = i * group, count = std::min(group, layout.count() - first);
        pack_nf4_group(values + first, count, count == group, first, scales[i], numbers);
      }
    });
  }

  void unpack_row(const PackedLayout& layout, const PackedBytes& parts, std::int64_t row, float* to) const override {
    const auto first = row * layout.inputs;
    if (layout.has_whole_groups()) {
      for (std::int64_t i = 0; i < layout.inputs; i += layout.group) {
        const auto scale = parts.floats[(first + i) / layout.group];
        unpack_nibbles(parts.numbers + (first + i) / 2, layout.group, to + i,
                       [&](unsigned number) { return values_of_nf4[number] * scale; });
      }
      return;
    }
    for (std::int64_t i = 0; i < layout.inputs; ++i)
      to[i] = values_of_nf4[nibble_at(parts.numbers, first + i)] * parts.floats[(first + i) / layout.group];
  }

  at::Tensor direct_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes) const override {
    const auto y = int16_product(layout, x, bytes, BlockOrder::even_first, nf4_int16_kernels);
    return y.defined() ? y : float_product(layout, x, bytes, nf4_float_kernels);
  }
};

}  // namespace

const NumberFormat& nf4_format() {
  static const Nf4 format;
  return format;
}

}  // namespace hortator::packed
