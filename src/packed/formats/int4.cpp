// Whole numbers from 0 to 15, and the scale and the smallest value of each group of a row.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "packed/formats/int4_product.hpp"
#include "packed/formats/nibbles.hpp"

namespace hortator::packed {
namespace {

/// What the numbers of a group stand for: number * scale + smallest. Both are exact in 16 bits.
struct Int4Scale {
  float scale = 0, smallest = 0;
};

Int4Scale in_half(float scale, float smallest) {
  const auto rounded = [](float value) { return static_cast<float>(static_cast<c10::Half>(value)); };
  return {.scale = rounded(scale), .smallest = rounded(smallest)};
}

/// Finds the scale of a group: that of rounding between its smallest and largest value, or one of least squares for a
/// range that is a little smaller or larger. Values that rounding keeps exactly stay exact.
class Int4ScaleSearch {
 public:
  Int4Scale scale_of(const float* values, std::int64_t count) {
    const auto [low, high] = std::minmax_element(values, values + count);
    const auto smallest = in_half(0, *low).smallest;
    auto best = in_half((*high - smallest) / 15, smallest);
    if (!(best.scale > 0)) return best;
    take(values, count);
    auto least = error_of(best);
    for (const float steps : {14.0F, 14.5F, 15.0F, 15.5F, 16.0F}) {
      if (least == 0) break;
      const auto found = fitted({.scale = (*high - *low) / steps, .smallest = *low});
      const auto error = found.scale > 0 ? error_of(found) : least;
      if (error < least) least = error, best = found;
    }
    return best;
  }

 private:
  static constexpr std::int64_t width = 4;
  using Lanes [[gnu::vector_size(16)]] = float;

  static float sum_of(const Lanes& all) { return (all[0] + all[1]) + (all[2] + all[3]); }
  static Lanes numbers_of(const Lanes& x, const Int4Scale& by) {
    constexpr float whole = 12582912, largest = 15;  // 1.5 * 2^23: a sum with it has no fraction
    const Lanes number = (x - by.smallest) / by.scale, from_0 = number > 0 ? number : Lanes{};
    return ((from_0 < largest ? from_0 : Lanes{} + largest) + whole) - whole;
  }

  // Errors of large values count more, as in llama.cpp, which costs less perplexity than equal weights.
  void take(const float* values, std::int64_t count) {
    const auto blocks = static_cast<std::size_t>((count + width - 1) / width);
    values_.assign(blocks, Lanes{});
    weights_.assign(blocks, Lanes{});
    const auto squares = std::inner_product(values, values + count, values, 0.0F);
    const auto size = std::sqrt(squares / static_cast<float>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      values_[static_cast<std::size_t>(i / width)][i % width] = values[i];
      weights_[static_cast<std::size_t>(i / width)][i % width] = size + std::abs(values[i]);
    }
  }

  /// Least squares for the numbers that `by` gives the values.
  Int4Scale fitted(const Int4Scale& by) const {
    Lanes weight = {}, x = {}, q = {}, qq = {}, qx = {};
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Lanes number = numbers_of(values_[i], by), weighed = number * weights_[i], above = values_[i] - by.smallest;
      weight += weights_[i], x += weights_[i] * above;
      q += weighed, qq += weighed * number, qx += weighed * above;
    }
    const auto spread = sum_of(weight) * sum_of(qq) - sum_of(q) * sum_of(q);
    if (!(spread > 0)) return {};
    const auto scale = (sum_of(weight) * sum_of(qx) - sum_of(q) * sum_of(x)) / spread;
    return in_half(scale, by.smallest + (sum_of(x) - scale * sum_of(q)) / sum_of(weight));
  }

  float error_of(const Int4Scale& by) const {
    Lanes sum = {};
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Lanes error = numbers_of(values_[i], by) * by.scale + by.smallest - values_[i];
      sum += weights_[i] * error * error;
    }
    return sum_of(sum);
  }

  std::vector<Lanes> values_, weights_;  ///< of the group, and how much an error of each value counts
};

std::uint32_t bits_of(float half) { return static_cast<c10::Half>(half).x; }

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
      Int4ScaleSearch search;
      for (auto row = begin; row < end; ++row)
        pack_row(layout, search, values + row * layout.inputs, pairs + row * layout.groups_of_row(),
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
  static void pack_row(const PackedLayout& layout, Int4ScaleSearch& search, const float* row, std::uint32_t* pairs,
                       std::uint8_t* numbers) {
    for (std::int64_t first = 0; first < layout.inputs; first += layout.group) {
      const auto end = std::min(first + layout.group, layout.inputs);
      const auto [scale, smallest] = search.scale_of(row + first, end - first);
      *pairs++ = bits_of(scale) << 16U | bits_of(smallest);
      for (auto i = first; i < end; ++i) {
        const auto number = scale > 0 ? std::nearbyint((row[i] - smallest) / scale) : 0.0F;
        put_nibble(numbers, i, static_cast<unsigned>(std::clamp(number, 0.0F, 15.0F)));
      }
    }
  }
};

}  // namespace

const NumberFormat& int4_format() {
  static const Int4 format;
  return format;
}

}  // namespace hortator::packed
