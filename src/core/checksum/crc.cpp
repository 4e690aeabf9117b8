#include "core/checksum/crc.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace hortator::core {
namespace {

// Tables, for any processor. Bits are reflected: the highest bit of a polynomial is x^0.

// Multiplies by x, modulo the polynomial.
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
constexpr CrcTables crc_tables = make_crc_tables<polynomial>();

// Returns the state after these bytes. A checksum is the complement of a state.
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

constexpr std::uint32_t polynomial = 0x82f63b78;
constexpr std::uint32_t one = 0x80000000;

constexpr std::uint32_t step(std::uint32_t value) { return crc_step<polynomial>(value); }

constexpr std::uint32_t times(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (auto bit = one; bit != 0; bit >>= 1, b = step(b)) {
    if ((a & bit) != 0) product ^= b;
  }
  return product;
}

// With the processor's instruction: its latency is three cycles and one starts every cycle, so three blocks are
// computed at the same time.

#if defined(__x86_64__) || (defined(__aarch64__) && defined(__ARM_FEATURE_CRC32))
#define HORTATOR_CRC32C_INSTRUCTION

std::uint64_t word_at(const unsigned char* data) {
  std::uint64_t word = 0;
  std::memcpy(&word, data, sizeof word);
  return word;
}

constexpr std::size_t block_bytes = 4096;

using Shift = std::array<std::array<std::uint32_t, 256>, 4>;

/// Tables that advance a state by a block of zeros, one for each byte of the state.
constexpr Shift make_shift() {
  auto power = one;
  for (std::size_t bit = 0; bit < 8 * block_bytes; ++bit) power = step(power);
  Shift shift{};
  for (std::size_t i = 0; i < shift.size(); ++i) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) shift[i][byte] = times(power, byte << (8 * i));
  }
  return shift;
}

std::uint32_t shifted(std::uint32_t state) {
  static constexpr Shift shift = make_shift();
  return shift[0][state & 255] ^ shift[1][(state >> 8) & 255] ^ shift[2][(state >> 16) & 255] ^ shift[3][state >> 24];
}

#if defined(__x86_64__)
#define HORTATOR_CRC32C_TARGET __attribute__((target("sse4.2")))
HORTATOR_CRC32C_TARGET inline std::uint32_t add_byte(std::uint32_t state, unsigned char byte) {
  return _mm_crc32_u8(state, byte);
}
HORTATOR_CRC32C_TARGET inline std::uint32_t add_word(std::uint32_t state, std::uint64_t word) {
  return static_cast<std::uint32_t>(_mm_crc32_u64(state, word));
}
bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#else
#define HORTATOR_CRC32C_TARGET
inline std::uint32_t add_byte(std::uint32_t state, unsigned char byte) { return __crc32cb(state, byte); }
inline std::uint32_t add_word(std::uint32_t state, std::uint64_t word) { return __crc32cd(state, word); }
bool has_instruction() { return true; }
#endif

HORTATOR_CRC32C_TARGET std::uint32_t by_instruction(std::uint32_t state, const unsigned char* data, std::size_t bytes) {
  for (; bytes >= 3 * block_bytes; data += 3 * block_bytes, bytes -= 3 * block_bytes) {
    std::uint32_t second = 0;
    std::uint32_t third = 0;
    for (std::size_t i = 0; i < block_bytes; i += 8) {
      state = add_word(state, word_at(data + i));
      second = add_word(second, word_at(data + block_bytes + i));
      third = add_word(third, word_at(data + 2 * block_bytes + i));
    }
    state = shifted(shifted(state) ^ second) ^ third;
  }
  for (; bytes >= 8; data += 8, bytes -= 8) state = add_word(state, word_at(data));
  for (; bytes > 0; ++data, --bytes) state = add_byte(state, *data);
  return state;
}
#endif

}  // namespace

// Each bit that follows a state multiplies it by x.
std::uint32_t crc32c_joined(std::uint32_t a, std::uint32_t b, std::size_t bytes_of_b) {
  auto power = one;
  auto square = one;
  for (int bit = 0; bit < 8; ++bit) square = step(square);  // x^8
  for (auto left = bytes_of_b; left > 0; left >>= 1, square = times(square, square)) {
    if ((left & 1) != 0) power = times(power, square);
  }
  return times(power, a) ^ b;
}

std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t before) {
  return ~crc_add<polynomial>(~before, static_cast<const unsigned char*>(data), bytes);
}

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before) {
#ifdef HORTATOR_CRC32C_INSTRUCTION
  static const bool fast = has_instruction();
  if (fast) return ~by_instruction(~before, static_cast<const unsigned char*>(data), bytes);
#endif
  return crc32c_portable(data, bytes, before);
}

std::uint32_t crc32(const void* data, std::size_t bytes, std::uint32_t before) {
  return ~crc_add<0xedb88320>(~before, static_cast<const unsigned char*>(data), bytes);
}

}  // namespace hortator::core
