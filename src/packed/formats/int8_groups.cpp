// Whole numbers from -127 to 127, and the scale of each group of a row.
#include <ATen/Parallel.h>

#include <algorithm>

#include "packed/formats/int16_product.hpp"
#include "packed/formats/int8_row.hpp"

namespace hortator::packed {
namespace {

#ifdef __x86_64__
template <std::int64_t rows>
HORTATOR_PACKED_TARGET void multiply_int8_groups_floats(const FloatProduct& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, group = all.layout.group, groups = inputs / group;
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs;
    const auto* scales = all.parts.floats + output * groups;
    __m512 sums[rows] = {};
    for (std::int64_t i = 0; i < inputs; i += lanes) {
      __builtin_prefetch(numbers + i + bytes_ahead, 0, 2);
      const auto bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers + i));
      const auto values = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)) * _mm512_set1_ps(scales[i / group]);
      for (std::int64_t row = 0; row < rows; ++row)
        sums[row] = _mm512_fmadd_ps(values, _mm512_loadu_ps(all.x + row * inputs + i), sums[row]);
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]);
  }
}

/// Groups are whole halves of blocks.
template <std::int64_t rows>
HORTATOR_INT16_TARGET void multiply_int8_groups_shorts(const Int16Product& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, blocks = inputs / int16_block, groups = all.layout.groups_of_row();
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs;
    const auto* scales = all.parts.floats + output * groups;
    __m512 sums[rows] = {};
    for (std::int64_t i = 0; i < blocks; ++i) {
      const auto* of_block = numbers + i * int16_block;
      __builtin_prefetch(of_block + bytes_ahead, 0, 2);
      const auto first = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block)));
      const auto second = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block) + 1));
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto* shorts = all.shorts + row * inputs + i * int16_block;
        const auto of_halves = _mm512_fmadd_ps(
            half_product(first, shorts), _mm512_set1_ps(scales[all.group_of_half[2 * i]]),
            half_product(second, shorts + int16_half) * _mm512_set1_ps(scales[all.group_of_half[2 * i + 1]]));
        sums[row] = _mm512_fmadd_ps(of_halves, _mm512_set1_ps(all.scales[row * blocks + i]), sums[row]);
      }
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]);
  }
}

constexpr FloatKernels int8_groups_float_kernels = {multiply_int8_groups_floats<1>, multiply_int8_groups_floats<2>,
                                                    multiply_int8_groups_floats<3>, multiply_int8_groups_floats<4>};
constexpr Int16Kernels int8_groups_int16_kernels = {multiply_int8_groups_shorts<1>, multiply_int8_groups_shorts<2>,
                                                    multiply_int8_groups_shorts<3>, multiply_int8_groups_shorts<4>};
#else
constexpr FloatKernels int8_groups_float_kernels = {};
constexpr Int16Kernels int8_groups_int16_kernels = {};
#endif

class Int8Groups final : public NumberFormat {
 public:
  const char* name() const override { return "int8_groups"; }
  bool has_bytes() const override { return true; }
  StoredFormat stored() const override { return {.state = ".quant_state.hortator__int8"}; }

  void pack(const PackedLayout& layout, const float* values, std::uint8_t* bytes) const override {
    auto* scales = reinterpret_cast<float*>(bytes);
    auto* numbers = bytes + layout.scale_bytes();
    at::parallel_for(0, layout.outputs, 16, [&](std::int64_t begin, std::int64_t end) {
      for (auto row = begin; row < end; ++row)
        pack_row(layout, values + row * layout.inputs, scales + row * layout.groups_of_row(),
                 numbers + row * layout.inputs);
    });
  }

  void unpack_row(const PackedLayout& layout, const PackedBytes& parts, std::int64_t row, float* to) const override {
    const auto* numbers = parts.numbers + row * layout.inputs;
    const auto* scales = parts.floats + row * layout.groups_of_row();
    for (std::int64_t i = 0; i < layout.inputs; ++i)
      to[i] = static_cast<float>(static_cast<std::int8_t>(numbers[i])) * scales[i / layout.group];
  }

  at::Tensor direct_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes) const override {
    const auto y = int16_product(layout, x, bytes, BlockOrder::as_is, int8_groups_int16_kernels);
    return y.defined() ? y : float_product(layout, x, bytes, int8_groups_float_kernels);
  }

 private:
  static void pack_row(const PackedLayout& layout, const float* row, float* scales, std::uint8_t* numbers) {
    for (std::int64_t group = 0; group < layout.groups_of_row(); ++group) {
      const auto first = group * layout.group, count = std::min(layout.group, layout.inputs - first);
      pack_int8_row(row + first, count, scales[group], numbers + first);
      scales[group] /= 127;
    }
  }
};

}  // namespace

const NumberFormat& int8_groups_format() {
  static const Int8Groups format;
  return format;
}

}  // namespace hortator::packed
