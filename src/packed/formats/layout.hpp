#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Half.h>

#include <cstddef>
#include <cstdint>
#include <hortator/quantise.hpp>

#include "packed/formats/number_format.hpp"

/// Weights in 8 and 4 bits.
namespace hortator::packed {

/// A matrix of `outputs` rows in one array of bytes: first the scales, then the numbers, row after row. Two numbers of
/// 4 bits share a byte, the first one in its upper half.
struct PackedLayout {
  WeightFormat format = WeightFormat::int8;
  std::int64_t outputs = 0, inputs = 0;
  std::int64_t group = 64;

  const NumberFormat& numbers() const { return format_of(format); }
  std::int64_t count() const { return outputs * inputs; }
  std::int64_t groups_of_row() const { return numbers().has_groups() ? (inputs + group - 1) / group : 1; }
  std::int64_t scales() const {
    return numbers().is_flat() ? (count() + group - 1) / group : outputs * groups_of_row();
  }
  /// Each scale takes 4 bytes: a float, or the scale and the smallest value as two numbers of IEEE's 16 bits.
  std::int64_t scale_bytes() const { return 4 * scales(); }
  std::int64_t row_bytes() const { return numbers().has_bytes() ? inputs : (inputs + 1) / 2; }
  std::int64_t number_bytes() const { return numbers().is_flat() ? (count() + 1) / 2 : outputs * row_bytes(); }
  std::int64_t bytes() const { return scale_bytes() + number_bytes(); }
  /// Whether rows consist of whole groups, so that they begin at a byte and with a scale of their own.
  bool has_whole_groups() const { return !numbers().has_groups() || inputs % group == 0; }
  friend bool operator==(const PackedLayout&, const PackedLayout&) = default;
};

/// The parts of the array.
struct PackedBytes {
  const float* floats;         ///< of int8 and nf4: the largest absolute values; of int8_groups: the scales
  const std::uint32_t* pairs;  ///< of int4: the scale in the upper half, the smallest value in the lower one
  const std::uint8_t* numbers;
};

/// The scale and the smallest value of int4.
inline float scale_of(std::uint32_t pair) {
  return c10::detail::fp16_ieee_to_fp32_value(static_cast<std::uint16_t>(pair >> 16U));
}
inline float smallest_of(std::uint32_t pair) {
  return c10::detail::fp16_ieee_to_fp32_value(static_cast<std::uint16_t>(pair));
}

inline PackedBytes parts_of(const PackedLayout& layout, const at::Tensor& bytes) {
  const auto* begin = bytes.const_data_ptr<std::uint8_t>();
  return {.floats = reinterpret_cast<const float*>(begin),
          .pairs = reinterpret_cast<const std::uint32_t*>(begin),
          .numbers = begin + layout.scale_bytes()};
}

}  // namespace hortator::packed
