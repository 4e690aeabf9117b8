// Whole numbers from 0 to 15, and the scale and the smallest value of each group of a row.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "packed/formats/int4_product.hpp"
#include "packed/formats/nibbles.hpp"

namespace hortator::packed {
namespace {

float rounded_to_half(float value) { return static_cast<float>(static_cast<c10::Half>(value)); }
std::uint32_t bits_of(float half) { return static_cast<c10::Half>(half).x; }

void pack_int4_group(const float* values, std::int64_t count, std::int64_t first, std::uint32_t& pair,
                     std::uint8_t* numbers) {
  const auto [low, high] = std::minmax_element(values, values + count);
  const auto smallest = rounded_to_half(*low);
  const auto scale = rounded_to_half((*high - smallest) / 15);
  pair = bits_of(scale) << 16U | bits_of(smallest);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto number = scale > 0 ? std::nearbyint((values[i] - smallest) / scale) : 0.0F;
    put_nibble(numbers, first + i, static_cast<unsigned>(std::clamp(number, 0.0F, 15.0F)));
  }
}

#ifdef __x86_64__
template <std::int64_t rows>
HORTATOR_PACKED_TARGET void multiply_int4_floats(const FloatProduct& all, std::int64_t begin, std::int64_t end) {
  const auto inputs = all.layout.inputs, group = all.layout.group, groups = inputs / group;
  for (auto output = begin; output < end; ++output) {
    const auto* numbers = all.parts.numbers + output * inputs / 2;
    const auto* pairs = all.parts.pairs + output * groups;
    __m512 sums[rows] = {};
    float smallest_sums[rows] = {};
    for (std::int64_t number = 0; number < groups; ++number) {
      const auto first = number * group;
      __builtin_prefetch(numbers + first / 2 + bytes_ahead, 0, 2);
      __m512 parts[rows] = {};
      for (auto at = first; at < first + group; at += lanes) {
        const auto values = _mm512_cvtepi32_ps(nibbles_in_lanes(numbers + at / 2));
        for (std::int64_t row = 0; row < rows; ++row)
          parts[row] = _mm512_fmadd_ps(values, _mm512_loadu_ps(all.x + row * inputs + at), parts[row]);
      }
      const auto scale = _mm512_set1_ps(_cvtsh_ss(static_cast<std::uint16_t>(pairs[number] >> 16U)));
      const auto smallest = _cvtsh_ss(static_cast<std::uint16_t>(pairs[number]));
      for (std::int64_t row = 0; row < rows; ++row) {
        sums[row] = _mm512_fmadd_ps(parts[row], scale, sums[row]);
        smallest_sums[row] += smallest * all.x_sums[row * groups + number];
      }
    }
    for (std::int64_t row = 0; row < rows; ++row)
      all.y[row * all.layout.outputs + output] = _mm512_reduce_add_ps(sums[row]) + smallest_sums[row];
  }
}

constexpr FloatKernels int4_float_kernels = {multiply_int4_floats<1>, multiply_int4_floats<2>, multiply_int4_floats<3>,
                                             multiply_int4_floats<4>};
#else
constexpr FloatKernels int4_float_kernels = {};
#endif

class Int4 final : public NumberFormat {
 public:
  const char* name() const override { return "int4"; }
  bool has_bytes() const override { return false; }
  bool has_half_scales() const override { return true; }
  StoredFormat stored() const override { return {.state = ".quant_state.hortator__int4", .scale_type = at::kHalf}; }

  void pack(const PackedLayout& layout, const float* values, std::uint8_t* bytes) const override {
    auto* pairs = reinterpret_cast<std::uint32_t*>(bytes);
    auto* numbers = bytes + layout.scale_bytes();
    at::parallel_for(0, layout.outputs, 16, [&](std::int64_t begin, std::int64_t end) {
      for (auto row = begin; row < end; ++row)
        pack_row(layout, values + row * layout.inputs, pairs + row * layout.groups_of_row(),
                 numbers + row * layout.row_bytes());
    });
  }

  void unpack_row(const PackedLayout& layout, const PackedBytes& parts, std::int64_t row, float* to) const override {
    const auto* numbers = parts.numbers + row * layout.row_bytes();
    const auto* pairs = parts.pairs + row * layout.groups_of_row();
    for (std::int64_t first = 0; first < layout.inputs; first += layout.group, ++pairs) {
      const auto count = std::min(layout.group, layout.inputs - first);
      const auto scale = scale_of(*pairs), smallest = smallest_of(*pairs);
      unpack_nibbles(numbers + first / 2, count, to + first,
                     [&](unsigned number) { return static_cast<float>(static_cast<int>(number)) * scale + smallest; });
    }
  }

  at::Tensor direct_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes) const override {
    const auto y = int4_product(layout, x, bytes);
    return y.defined() ? y : float_product(layout, x, bytes, int4_float_kernels, true);
  }

 private:
  static void pack_row(const PackedLayout& layout, const float* row, std::uint32_t* pairs, std::uint8_t* numbers) {
    for (std::int64_t group = 0; group < layout.groups_of_row(); ++group) {
      const auto first = group * layout.group;
      pack_int4_group(row + first, std::min(layout.group, layout.inputs - first), first, pairs[group], numbers);
    }
  }
};

}  // namespace

const NumberFormat& int4_format() {
  static const Int4 format;
  return format;
}

}  // namespace hortator::packed
