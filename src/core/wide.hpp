#pragma once

#include <cstdint>

/// Products of 64-bit numbers that need 128 bits.
namespace hortator::core {

__extension__ using Wide = unsigned __int128;

/// The upper 64 bits. With a random `a`: a random number below `b`.
constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>((Wide{a} * b) >> 64);
}

/// Upper and lower half, one over the other: a hash of both.
constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

}  // namespace hortator::core
