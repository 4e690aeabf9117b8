#pragma once

#include <cstdint>

namespace hortator::packed {

/// Numbers of 4 bits: two in a byte, the first one in its upper half.
inline unsigned nibble_at(const std::uint8_t* numbers, std::int64_t index) {
  const auto byte = numbers[index / 2];
  return index % 2 == 0 ? byte >> 4U : byte & 15U;
}

/// Into a byte whose upper half is put first.
inline void put_nibble(std::uint8_t* numbers, std::int64_t index, unsigned number) {
  auto& byte = numbers[index / 2];
  byte = index % 2 == 0 ? static_cast<std::uint8_t>(number << 4U) : static_cast<std::uint8_t>(byte | number);
}

/// The values of `count` numbers from the beginning of a byte on.
template <typename Value>
void unpack_nibbles(const std::uint8_t* numbers, std::int64_t count, float* to, const Value& value) {
  for (std::int64_t i = 0; i < count / 2; ++i) {
    to[2 * i] = value(numbers[i] >> 4U);
    to[2 * i + 1] = value(numbers[i] & 15U);
  }
  if (count % 2 != 0) to[count - 1] = value(nibble_at(numbers, count - 1));
}

}  // namespace hortator::packed
