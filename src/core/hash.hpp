#pragma once

#include <cstdint>
#include <string_view>

namespace hortator::core {

/// FNV-1a: the same on every machine and in every build, for comparing, never for security.
constexpr std::uint64_t hash(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ULL) {
  for (const char byte : text) {
    seed ^= static_cast<unsigned char>(byte);
    seed *= 0x100000001b3ULL;
  }
  return seed;
}

/// Well mixed: neighbouring numbers give unlike results (the finaliser of splitmix64). Counted on by all that is drawn
/// as a function of (seed, epoch, position): it must stay what it is.
constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t number) {
  std::uint64_t bits = (state ^ number) + 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

}  // namespace hortator::core
