#pragma once

#include <cstdint>
#include <string_view>

namespace hortator::core {

/// FNV-1a: equal on every machine and in every build. For comparing, not for security.
constexpr std::uint64_t hash(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ULL) {
  for (const char byte : text) {
    seed ^= static_cast<unsigned char>(byte);
    seed *= 0x100000001b3ULL;
  }
  return seed;
}

/// The finaliser of splitmix64: neighbouring numbers give unrelated results. It must never change: all random draws
/// that are a function of (seed, epoch, position) depend on it.
constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t number) {
  std::uint64_t bits = (state ^ number) + 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

/// Products of 64-bit numbers that need 128 bits.

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
