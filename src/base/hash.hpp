#pragma once

#include <cstdint>
#include <string_view>

namespace hortator::base {

/// FNV-1a: the same on every machine and in every build, for comparing, never for security.
constexpr std::uint64_t hash(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ULL) {
  for (const char byte : text) {
    seed ^= static_cast<unsigned char>(byte);
    seed *= 0x100000001b3ULL;
  }
  return seed;
}

}  // namespace hortator::base
