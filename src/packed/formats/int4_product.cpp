#include "packed/formats/int4_product.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "packed/formats/int16_product.hpp"

namespace hortator::packed {

#ifdef __x86_64__
namespace {

constexpr std::int64_t int4_block = 128, plane_bytes = int4_block / 2;  // numbers, and the bytes in which they are
constexpr std::int64_t shortest_group = 32;
constexpr std::int64_t outputs_at_once = 4;
constexpr std::int64_t int4_bytes_ahead = 4096;    // that are asked for before they are needed, also of the next rows
constexpr std::int64_t int4_scales_ahead = 256;    // the same of scales
constexpr float largest_number = 127 * 256 + 127;  // that two signed bytes hold

std::int64_t up_to_multiple(std::int64_t count, std::int64_t of) { return (count + of - 1) / of * of; }

/// A few rows of inputs in two bytes each. A block has four planes of 64 bytes: the upper bytes of its even numbers and
/// of its odd ones, then the lower bytes of both.
struct Planes {
  Planes(const PackedLayout& layout, std::int64_t rows)
      : blocks((layout.inputs + int4_block - 1) / int4_block),
        groups(up_to_multiple(layout.groups_of_row(), lanes)),
        bytes(static_cast<std::size_t>(rows * blocks * 4 * plane_bytes)),
        scales(static_cast<std::size_t>(rows * groups)),
        sums(scales.size()) {}

  std::int64_t blocks, groups;  ///< of a row; groups up to whole lanes
  std::vector<std::int8_t> bytes;
  std::vector<float> scales;  ///< [rows, groups]: of the inputs
  std::vector<float> sums;    ///< [rows, groups]: of the inputs
};

/// The largest absolute value. NaN and infinite numbers are larger than all others.
HORTATOR_INT16_TARGET float largest_float(const float* x, std::int64_t count) {
  auto largest = _mm512_setzero_si512();  // compared as whole numbers, which have the order of positive floats
  for (std::int64_t i = 0; i < count; i += lanes)
    largest = _mm512_max_epu32(largest, _mm512_castps_si512(_mm512_abs_ps(_mm512_loadu_ps(x + i))));
  return std::bit_cast<float>(_mm512_reduce_max_epu32(largest));
}

/// The even bytes into one plane, the odd ones into the next.
HORTATOR_INT16_TARGET inline void put_split(std::int8_t* plane, std::int64_t at, __m128i bytes) {
  const auto even_first = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  const auto split = _mm_shuffle_epi8(bytes, even_first);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(plane + at), split);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(plane + plane_bytes + at), _mm_unpackhi_epi64(split, split));
}

/// 128 numbers. A factor of 0 gives zeros. `sums`: of the whole numbers of each 32.
HORTATOR_INT16_TARGET void round_int4_block(const float* x, float factor, std::int8_t* planes, std::int32_t* sums) {
  const auto by = _mm512_set1_ps(factor);
  for (std::int64_t i = 0; i < int4_block; i += lanes) {
    const auto whole = _mm512_cvtps_epi32(_mm512_loadu_ps(x + i) * by);
    const auto lower = _mm512_srai_epi32(_mm512_slli_epi32(whole, 24), 24);
    const auto upper = _mm512_srai_epi32(_mm512_sub_epi32(whole, lower), 8);
    put_split(planes, i / 2, _mm512_cvtepi32_epi8(upper));
    put_split(planes + 2 * plane_bytes, i / 2, _mm512_cvtepi32_epi8(lower));
    sums[i / shortest_group] += _mm512_reduce_add_epi32(whole);
  }
}

HORTATOR_INT16_TARGET void take_row(const PackedLayout& layout, const float* x, std::int64_t row, Planes& planes) {
  const auto same_scale = std::max(int4_block, layout.group);
  auto* scales = planes.scales.data() + row * planes.groups;
  auto* sums = planes.sums.data() + row * planes.groups;
  for (std::int64_t first = 0; first < layout.inputs; first += same_scale) {
    const auto count = std::min(same_scale, layout.inputs - first), end = first + count;
    const auto largest = largest_float(x + first, count);
    const bool is_finite = largest <= std::numeric_limits<float>::max();
    // as it would be in float32: no whole number is NaN
    const auto scale = is_finite ? largest / largest_number : std::numeric_limits<float>::quiet_NaN();
    const auto factor = is_finite && largest >= smallest_largest ? largest_number / largest : 0.0F;
    for (auto group = first / layout.group; group * layout.group < end; ++group) scales[group] = scale;
    for (auto at = first; at < end; at += int4_block) {
      alignas(64) std::array<float, int4_block> values{};
      if (factor > 0) std::copy_n(x + at, std::min(int4_block, end - at), values.data());
      std::array<std::int32_t, int4_block / shortest_group> whole{};
      round_int4_block(values.data(), factor,
                       planes.bytes.data() + (row * planes.blocks + at / int4_block) * 4 * plane_bytes, whole.data());
      for (std::int64_t i = at; i < std::min(at + int4_block, end); i += shortest_group)
        sums[i / layout.group] +=
            static_cast<float>(whole[static_cast<std::size_t>((i - at) / shortest_group)]) * scale;
    }
  }
}

struct Int4Product {
  const PackedLayout& layout;
  PackedBytes parts;
  const Planes& planes;
  float* y;  ///< [rows, outputs]
};

inline __mmask16 lanes_before(std::int64_t end) {
  return static_cast<__mmask16>(end >= lanes ? 0xFFFF : (1 << end) - 1);
}

/// The scales of one output's groups times those of the inputs, into `scales` [rows, groups]; into `sums`, what the
/// smallest values of groups add to the results.
template <std::int64_t rows>
HORTATOR_INT16_TARGET inline void take_scales(const Int4Product& all, std::int64_t output, float* scales,
                                              __m512* sums) {
  const auto groups = all.layout.groups_of_row();
  const auto* pairs = all.parts.pairs + output * groups;
  __builtin_prefetch(pairs + int4_scales_ahead, 0, 2);
  for (std::int64_t first = 0; first < groups; first += lanes) {
    const auto both = _mm512_maskz_loadu_epi32(lanes_before(groups - first), pairs + first);
    const auto scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(both, 16)));
    const auto smallest = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(both));
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto at = row * all.planes.groups + first;
      _mm512_storeu_ps(scales + at, scale * _mm512_loadu_ps(all.planes.scales.data() + at));
      sums[row] = _mm512_fmadd_ps(smallest, _mm512_loadu_ps(all.planes.sums.data() + at), sums[row]);
    }
  }
}

/// As one number, which is loaded at once.
inline double two_floats(const float* from) {
  double both = 0;
  std::memcpy(&both, from, sizeof both);
  return both;
}

/// The scales of a block's 16 lanes, of 8 numbers each, from those of groups.
template <std::int64_t groups_of_block>
HORTATOR_INT16_TARGET inline __m512 scales_of_block(const float* scales, std::int64_t number, std::int64_t group) {
  if constexpr (groups_of_block == 4) {
    const auto order = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(order, _mm512_castps128_ps512(_mm_loadu_ps(scales + 4 * number)));
  } else if constexpr (groups_of_block == 2) {
    const auto order = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    return _mm512_permutexvar_ps(order, _mm512_castpd_ps(_mm512_set1_pd(two_floats(scales + 2 * number))));
  } else {
    return _mm512_set1_ps(scales[number * int4_block / group]);
  }
}

/// The sums of the lanes of four vectors.
HORTATOR_INT16_TARGET inline __m128 sums_of_lanes(const __m512* four) {
  __m128 quarter[4];
  for (int i = 0; i < 4; ++i) {
    const auto eight = _mm512_castps512_ps256(four[i]) + _mm512_extractf32x8_ps(four[i], 1);
    quarter[i] = _mm256_castps256_ps128(eight) + _mm256_extractf128_ps(eight, 1);
  }
  return _mm_hadd_ps(_mm_hadd_ps(quarter[0], quarter[1]), _mm_hadd_ps(quarter[2], quarter[3]));
}

/// Adds block `i` of some outputs; `present`: its bytes.
template <std::int64_t outputs, std::int64_t rows, std::int64_t groups_of_block>
HORTATOR_INT16_TARGET inline __attribute__((always_inline)) void add_int4_block(const Int4Product& all,
                                                                                const std::uint8_t* numbers,
                                                                                __mmask64 present, std::int64_t i,
                                                                                const float* scales,
                                                                                __m512 (*sums)[4]) {
  const auto row_bytes = all.layout.inputs / 2, blocks = all.planes.blocks, groups = all.planes.groups;
  const auto mask = _mm512_set1_epi8(15);
  __m512i even[outputs], odd[outputs];
  for (std::int64_t output = 0; output < outputs; ++output) {
    const auto* of_block = numbers + output * row_bytes + i * plane_bytes;
    __builtin_prefetch(of_block + int4_bytes_ahead, 0, 2);
    const auto both = _mm512_maskz_loadu_epi8(present, of_block);
    even[output] = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
    odd[output] = _mm512_and_si512(both, mask);
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto number = row * blocks + i;
    const auto* planes = all.planes.bytes.data() + number * 4 * plane_bytes;
    const __m512i plane[4] = {_mm512_loadu_si512(planes), _mm512_loadu_si512(planes + plane_bytes),
                              _mm512_loadu_si512(planes + 2 * plane_bytes),
                              _mm512_loadu_si512(planes + 3 * plane_bytes)};
    for (std::int64_t output = 0; output < outputs; ++output) {
      const auto upper = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), even[output], plane[0]),
                                             odd[output], plane[1]);
      const auto both = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_slli_epi32(upper, 8), even[output], plane[2]),
                                            odd[output], plane[3]);
      const auto product = _mm512_cvtepi32_ps(both);
      const auto scale = scales_of_block<groups_of_block>(scales + (output * rows + row) * groups, i, all.layout.group);
      sums[row][output] = _mm512_fmadd_ps(product, scale, sums[row][output]);
    }
  }
}

/// `outputs` of them from the first one on; `scales`: room for [outputs, rows, groups].
template <std::int64_t outputs, std::int64_t rows, std::int64_t groups_of_block>
HORTATOR_INT16_TARGET inline void multiply_some(const Int4Product& all, std::int64_t first, float* scales) {
  const auto row_bytes = all.layout.inputs / 2, groups = all.planes.groups;
  const auto* numbers = all.parts.numbers + first * row_bytes;
  __m512 sums[rows][4] = {};
  for (std::int64_t output = 0; output < outputs; ++output) {
    __m512 added[rows] = {};
    take_scales<rows>(all, first + output, scales + output * rows * groups, added);
    for (std::int64_t row = 0; row < rows; ++row) sums[row][output] = added[row];
  }
  for (std::int64_t i = 0; i < row_bytes / plane_bytes; ++i)
    add_int4_block<outputs, rows, groups_of_block>(all, numbers, ~__mmask64{0}, i, scales, sums);
  if (const auto rest = row_bytes % plane_bytes; rest > 0)
    add_int4_block<outputs, rows, groups_of_block>(all, numbers, (__mmask64{1} << rest) - 1, row_bytes / plane_bytes,
                                                   scales, sums);
  for (std::int64_t row = 0; row < rows; ++row) {
    auto* y = all.y + row * all.layout.outputs + first;
    const auto of_row = sums_of_lanes(sums[row]);
    if constexpr (outputs == 4) {
      _mm_storeu_ps(y, of_row);
    } else {
      *y = _mm_cvtss_f32(of_row);
    }
  }
}

template <std::int64_t rows, std::int64_t groups_of_block>
HORTATOR_INT16_TARGET void multiply_int4(const Int4Product& all, std::int64_t begin, std::int64_t end) {
  std::vector<float> scales(static_cast<std::size_t>(outputs_at_once * rows * all.planes.groups));
  auto output = begin;
  for (; output + outputs_at_once <= end; output += outputs_at_once)
    multiply_some<outputs_at_once, rows, groups_of_block>(all, output, scales.data());
  for (; output < end; ++output) multiply_some<1, rows, groups_of_block>(all, output, scales.data());
}

using MultiplyInt4 = void (*)(const Int4Product&, std::int64_t, std::int64_t);

template <std::int64_t rows>
MultiplyInt4 multiply_of_group(std::int64_t group) {
  return group == 32 ? multiply_int4<rows, 4> : group == 64 ? multiply_int4<rows, 2> : multiply_int4<rows, 1>;
}

bool can_multiply_int4(const PackedLayout& layout) {
  const bool has_lanes = layout.group == 32 || layout.group == 64 || layout.group % int4_block == 0;
  return has_integer_instructions() && has_lanes && layout.has_whole_groups();
}

}  // namespace

at::Tensor int4_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes) {
  if (!can_multiply_int4(layout)) return {};
  const auto rows = x.size(0);
  auto y = at::empty({rows, layout.outputs}, x.options());
  Planes planes(layout, rows);
  for (std::int64_t row = 0; row < rows; ++row)
    take_row(layout, x.const_data_ptr<float>() + row * layout.inputs, row, planes);
  const Int4Product all{
      .layout = layout, .parts = parts_of(layout, bytes), .planes = planes, .y = y.mutable_data_ptr<float>()};
  const auto work = rows == 1   ? multiply_of_group<1>(layout.group)
                    : rows == 2 ? multiply_of_group<2>(layout.group)
                    : rows == 3 ? multiply_of_group<3>(layout.group)
                                : multiply_of_group<4>(layout.group);
  over_outputs(layout, [&](std::int64_t begin, std::int64_t end) { work(all, begin, end); });
  return y;
}
#else
at::Tensor int4_product(const PackedLayout&, const at::Tensor&, const at::Tensor&) { return {}; }
#endif

}  // namespace hortator::packed
