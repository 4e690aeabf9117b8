// Rounds weights to 8 and 4 bits.
#include "packed/packing.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace hortator::packed {
namespace {

constexpr std::array<float, 16> nf4_table = {-1.0F,
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

float largest_of(const float* values, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(values[i]));
  return largest;
}

void put_nibble(std::uint8_t* numbers, std::int64_t index, unsigned number) {
  auto& byte = numbers[index / 2];
  byte = index % 2 == 0 ? static_cast<std::uint8_t>(number << 4U) : static_cast<std::uint8_t>(byte | number);
}

void pack_int8_row(const float* row, std::int64_t inputs, float& scale, std::uint8_t* numbers) {
  scale = largest_of(row, inputs);
  const float factor = 127.0F / scale;
  for (std::int64_t i = 0; i < inputs; ++i) {
    const auto number = std::isfinite(factor) ? std::nearbyint(row[i] * factor) : 0.0F;
    numbers[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(number));
  }
}

unsigned nearest_nf4(float value) {
  unsigned number = 0;
  while (number < nf4_table.size() - 1 && value > (nf4_table[number] + nf4_table[number + 1]) / 2) ++number;
  return number;
}

/// As bitsandbytes: a last group that is shorter is divided, whole ones are multiplied by the reciprocal.
void pack_nf4_group(const float* values, std::int64_t count, bool is_whole, std::int64_t first, float& scale,
                    std::uint8_t* numbers) {
  constexpr float smallest = 1e-38F;
  const auto largest = largest_of(values, count);
  const auto divisor = std::max(largest, smallest);
  scale = is_whole ? largest : divisor;
  const float factor = 1.0F / divisor;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto scaled = is_whole ? values[i] * factor : values[i] / divisor;
    put_nibble(numbers, first + i, nearest_nf4(std::clamp(scaled, -1.0F, 1.0F)));
  }
}

float rounded_to_half(float value) { return static_cast<float>(static_cast<c10::Half>(value)); }
std::uint32_t bits_of(float half) { return static_cast<c10::Half>(half).x; }

/// Numbers of 8 bits with a scale for each group.
void pack_int8_groups(const float* row, const PackedLayout& layout, float* scales, std::uint8_t* numbers) {
  for (std::int64_t group = 0; group < layout.groups_of_row(); ++group) {
    const auto first = group * layout.group, count = std::min(layout.group, layout.inputs - first);
    pack_int8_row(row + first, count, scales[group], numbers + first);
    scales[group] /= 127;
  }
}

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

void pack_int4_row(const float* row, const PackedLayout& layout, std::uint32_t* pairs, std::uint8_t* numbers) {
  for (std::int64_t group = 0; group < layout.groups_of_row(); ++group) {
    const auto first = group * layout.group;
    pack_int4_group(row + first, std::min(layout.group, layout.inputs - first), first, pairs[group], numbers);
  }
}

}  // namespace

const float* nf4_values() { return nf4_table.data(); }

at::Tensor pack(const at::Tensor& weight, const PackedLayout& layout) {
  auto bytes = at::empty({layout.bytes(), 1}, weight.options().dtype(at::kByte).requires_grad(false));
  const auto* values = weight.const_data_ptr<float>();
  auto* scales = bytes.mutable_data_ptr<std::uint8_t>();
  auto* floats = reinterpret_cast<float*>(scales);
  auto* pairs = reinterpret_cast<std::uint32_t*>(scales);
  auto* numbers = scales + layout.scale_bytes();
  const auto [inputs, group] = std::pair(layout.inputs, layout.group);
  if (layout.format == WeightFormat::nf4) {
    // groups of an odd number of values do not exist, so that each begins at a byte
    at::parallel_for(0, layout.scales(), 256, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        const auto first = i * group, count = std::min(group, layout.count() - first);
        pack_nf4_group(values + first, count, count == group, first, floats[i], numbers);
      }
    });
    return bytes;
  }
  at::parallel_for(0, layout.outputs, 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) {
      auto* of_row = numbers + row * layout.row_bytes();
      if (layout.format == WeightFormat::int8) {
        pack_int8_row(values + row * inputs, inputs, floats[row], of_row);
      } else if (layout.format == WeightFormat::int8_groups) {
        pack_int8_groups(values + row * inputs, layout, floats + row * layout.groups_of_row(), of_row);
      } else {
        pack_int4_row(values + row * inputs, layout, pairs + row * layout.groups_of_row(), of_row);
      }
    }
  });
  return bytes;
}

}  // namespace hortator::packed
