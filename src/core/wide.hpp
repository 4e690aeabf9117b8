#pragma once

#include <cstdint>

/// Products of 64-bit numbers that need 128 bits.
namespace hortator::core {

__extension__ using Wide = unsigned __int128;

/// The upper 64 bits of the product. With a random `a`, the result is a random number below `b`.
constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>((Wide{a} * b) >> 64);
}

/// The upper and lower half of the product, combined by exclusive or: a hash of both factors.
constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

}  // namespace hortator::core
