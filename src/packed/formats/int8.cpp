// Whole numbers from -127 to 127, and the largest absolute value of each row: bitsandbytes' int8_vectorwise_quant.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "packed/formats/int16_product.hpp"
#include "packed/formats/int8_row.hpp"

namespace hortator::packed {

void pack_int8_row(const float* row, std::int64_t inputs, float& scale, std::uint8_t* numbers) {
  scale = 0;
  for (std::int64_t i = 0; i < inputs; ++i) scale = std::max(scale, std::abs(row[i]));
  const float factor = 127.0F / scale;
  for (std::int64_t i = 0; i < inputs; ++i) {
    const auto number = std::isfinite(factor) ? std::nearbyint(row[i] * factor) : 0.0F;
    numbers[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(number));
  }
}

namespace {

/// What numbers are multiplied by, beside the scale: 1 / 127 as bitsandbytes has it.
constexpr float int8_step = 0.007874015718698502F;

#ifdef __x86_64__
template <std::int64_t rows>
HORTATOR_PACKED_TARGET void multiply_int8_floats(const FloatProduct& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs;
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs;
    __m512 sums[rows][2] = {};
    std::int64_t i = 0;
    for (; i + 2 * lanes <= inputs; i += 2 * lanes) {
      __builtin_prefetch(numbers + i + bytes_ahead, 0, 2);
      for (int half = 0; half < 2; ++half) {
        const auto at = i + half * lanes;
        const auto bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers + at));
        const auto values = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
        for (std::int64_t row = 0; row < rows; ++row)
          sums[row][half] = _mm512_fmadd_ps(values, _mm512_loadu_ps(all.x + row * inputs + at), sums[row][half]);
      }
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      auto sum = _mm512_reduce_add_ps(_mm512_add_ps(sums[row][0], sums[row][1]));
      for (auto at = i; at < inputs; ++at)
        sum += static_cast<float>(static_cast<std::int8_t>(numbers[at])) * all.x[row * inputs + at];
      all.y[row * all.layout.outputs + output] = sum * all.parts.floats[output] * int8_step;
    }
  }
}

template <std::int64_t rows>
HORTATOR_INT16_TARGET void multiply_int8_shorts(const Int16Product& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, blocks = inputs / int16_block;
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs;
    __m512 sums[rows] = {};
    for (std::int64_t i = 0; i < blocks; ++i) {
      const auto* of_block = numbers + i * int16_block;
      __builtin_prefetch(of_block + bytes_ahead, 0, 2);
      const auto first = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block)));
      const auto second = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_block) + 1));
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto* shorts = all.shorts + row * inputs + i * int16_block;
        const auto one = _mm512_dpwssd_epi32(_mm512_setzero_si512(), first, _mm512_loadu_si512(shorts));
        const auto both = _mm512_dpwssd_epi32(one, second, _mm512_loadu_si512(shorts + int16_half));
        sums[row] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(both), _mm512_set1_ps(all.scales[row * blocks + i]), sums[row]);
      }
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]) * all.parts.floats[output] * int8_step;
  }
}

constexpr FloatKernels int8_float_kernels = {multiply_int8_floats<1>, multiply_int8_floats<2>, multiply_int8_floats<3>,
                                             multiply_int8_floats<4>};
constexpr Int16Kernels int8_int16_kernels = {multiply_int8_shorts<1>, multiply_int8_shorts<2>, multiply_int8_shorts<3>,
                                             multiply_int8_shorts<4>};
#else
constexpr FloatKernels int8_float_kernels = {};
constexpr Int16Kernels int8_int16_kernels = {};
#endif

class Int8 final : public NumberFormat {
 public:
  const char* name() const override { return "int8"; }
  bool has_bytes() const override { return true; }
  bool has_groups() const override { return false; }
  StoredFormat stored() const override { return {.is_of_bitsandbytes = true, .bitsandbytes = "load_in_8bit"}; }

  void pack(const PackedLayout& layout, const float* values, std::uint8_t* bytes) const override {
    auto* scales = reinterpret_cast<float*>(bytes);
    auto* numbers = bytes + layout.scale_bytes();
    at::parallel_for(0, layout.outputs, 16, [&](std::int64_t begin, std::int64_t end) {
      for (auto row = begin; row < end; ++row)
        pack_int8_row(values + row * layout.inputs, layout.inputs, scales[row], numbers + row * layout.inputs);
    });
  }

  void unpack_row(const PackedLayout& layout, const PackedBytes& parts, std::int64_t row, float* to) const override {
    const auto* numbers = parts.numbers + row * layout.inputs;
    const auto largest = parts.floats[row];
    for (std::int64_t i = 0; i < layout.inputs; ++i)
      to[i] = static_cast<float>(static_cast<std::int8_t>(numbers[i])) * largest * int8_step;
  }

  at::Tensor direct_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes) const override {
    const auto y = int16_product(layout, x, bytes, BlockOrder::as_is, int8_int16_kernels);
    return y.defined() ? y : float_product(layout, x, bytes, int8_float_kernels);
  }
};

}  // namespace

const NumberFormat& int8_format() {
  static const Int8 format;
  return format;
}

}  // namespace hortator::packed
