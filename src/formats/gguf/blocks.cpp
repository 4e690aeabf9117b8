#include "formats/gguf/blocks.hpp"

#include <c10/util/Half.h>

#include <cstring>

// A block is one or two factors of 16 bits, and integers of 4, 6 or 8 bits, in the order that llama.cpp's kernels read.
namespace hortator::formats {
namespace {

float half_at(const std::uint8_t* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return c10::detail::fp16_ieee_to_fp32_value(bits);
}

int low(std::uint8_t byte) { return byte & 0xF; }
int high(std::uint8_t byte) { return byte >> 4; }

/// Factor, 32 signed bytes.
struct Q8_0 {
  static constexpr int elements = 32, bytes = 34;
  static void convert(const std::uint8_t* block, float* to) {
    const auto factor = half_at(block);
    for (int i = 0; i < elements; ++i) to[i] = factor * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }
};

/// Factor, 16 pairs of 4 bits: the lower ones are the first half.
struct Q4_0 {
  static constexpr int elements = 32, bytes = 18;
  static void convert(const std::uint8_t* block, float* to) {
    constexpr int zero = 8, half = elements / 2;
    const auto factor = half_at(block);
    for (int i = 0; i < half; ++i) {
      to[i] = factor * static_cast<float>(low(block[2 + i]) - zero);
      to[i + half] = factor * static_cast<float>(high(block[2 + i]) - zero);
    }
  }
};

/// Factor, smallest value, 16 pairs of 4 bits.
struct Q4_1 {
  static constexpr int elements = 32, bytes = 20;
  static void convert(const std::uint8_t* block, float* to) {
    constexpr int half = elements / 2;
    const auto factor = half_at(block), smallest = half_at(block + 2);
    for (int i = 0; i < half; ++i) {
      to[i] = factor * static_cast<float>(low(block[4 + i])) + smallest;
      to[i + half] = factor * static_cast<float>(high(block[4 + i])) + smallest;
    }
  }
};

/// Factor, factor of the offsets, eight scales and offsets of 6 bits in 12 bytes, 128 pairs of 4 bits.
struct Q4_K {
  static constexpr int elements = 256, bytes = 144;

  struct Scaling {
    int scale, offset;
  };
  static Scaling scaling(const std::uint8_t* packed, int group) {
    constexpr int six_bits = 63;
    if (group < 4) return {.scale = packed[group] & six_bits, .offset = packed[group + 4] & six_bits};
    return {.scale = low(packed[group + 4]) | packed[group - 4] >> 6 << 4,
            .offset = high(packed[group + 4]) | packed[group] >> 6 << 4};
  }

  static void convert(const std::uint8_t* block, float* to) {
    constexpr int width = 32;
    const auto factor = half_at(block), offset_factor = half_at(block + 2);
    const auto* packed = block + 4;
    for (int group = 0; group < elements / width; ++group) {
      const auto [scale, offset] = scaling(packed, group);
      const auto multiplier = factor * static_cast<float>(scale);
      const auto subtracted = offset_factor * static_cast<float>(offset);
      const auto* values = block + 16 + group / 2 * width;
      for (int i = 0; i < width; ++i) {
        const auto value = group % 2 == 0 ? low(values[i]) : high(values[i]);
        *to++ = multiplier * static_cast<float>(value) - subtracted;
      }
    }
  }
};

/// 128 bytes of lower 4 bits, 64 bytes of upper 2 bits, 16 signed scales, factor.
struct Q6_K {
  static constexpr int elements = 256, bytes = 210;
  static void convert(const std::uint8_t* block, float* to) {
    constexpr int zero = 32, width = 32, half = elements / 2;
    const auto* scales = block + 192;
    const auto factor = half_at(block + 208);
    for (int i = 0; i < elements; ++i) {
      const int group = i % half / width;  // of the four that share bytes with upper bits
      const int column = i % width;
      const auto lower = block[i / half * (half / 2) + group % 2 * width + column];
      const auto upper = block[half + i / half * width + column];
      const int value = (group < 2 ? low(lower) : high(lower)) | (upper >> (2 * group) & 3) << 4;
      const auto scale = static_cast<std::int8_t>(scales[i / 16]);
      to[i] = factor * static_cast<float>(scale) * static_cast<float>(value - zero);
    }
  }
};

template <typename Block>
void convert_all(const std::byte* from, std::int64_t elements, float* to) {
  const auto* block = reinterpret_cast<const std::uint8_t*>(from);
  for (std::int64_t i = 0; i < elements; i += Block::elements, block += Block::bytes, to += Block::elements)
    Block::convert(block, to);
}

}  // namespace

bool dequantise(const GgufType& type, const std::byte* from, std::int64_t elements, float* to) {
  if (type.name == "Q8_0") return convert_all<Q8_0>(from, elements, to), true;
  if (type.name == "Q4_0") return convert_all<Q4_0>(from, elements, to), true;
  if (type.name == "Q4_1") return convert_all<Q4_1>(from, elements, to), true;
  if (type.name == "Q4_K") return convert_all<Q4_K>(from, elements, to), true;
  if (type.name == "Q6_K") return convert_all<Q6_K>(from, elements, to), true;
  return false;
}

}  // namespace hortator::formats
