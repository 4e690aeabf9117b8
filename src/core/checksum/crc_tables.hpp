#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Table-driven cyclic redundancy checks of 32 bits, for any processor. Bits are reflected: the highest bit of a
/// polynomial is x^0.
namespace hortator::core {

/// Multiplies by x, modulo the polynomial.
template <std::uint32_t polynomial>
constexpr std::uint32_t crc_step(std::uint32_t value) {
  return (value & 1) != 0 ? (value >> 1) ^ polynomial : value >> 1;
}

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

template <std::uint32_t polynomial>
constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    auto value = byte;
    for (int bit = 0; bit < 8; ++bit) value = crc_step<polynomial>(value);
    tables[0][byte] = value;
  }
  for (std::size_t i = 1; i < tables.size(); ++i) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto value = tables[i - 1][byte];
      tables[i][byte] = (value >> 8) ^ tables[0][value & 255];
    }
  }
  return tables;
}

template <std::uint32_t polynomial>
inline constexpr CrcTables crc_tables = make_crc_tables<polynomial>();

/// Returns the state after these bytes. A checksum is the complement of a state.
template <std::uint32_t polynomial>
std::uint32_t crc_add(std::uint32_t state, const unsigned char* data, std::size_t bytes) {
  const auto& tables = crc_tables<polynomial>;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof word);
    word ^= state;
    state = 0;
    for (std::size_t i = 0; i < 8; ++i) state ^= tables[7 - i][(word >> (8 * i)) & 255];
  }
  for (; bytes > 0; ++data, --bytes) state = (state >> 8) ^ tables[0][(state ^ *data) & 255];
  return state;
}

}  // namespace hortator::core
