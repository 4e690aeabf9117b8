#pragma once

#include <cstdint>
#include <optional>

/// Data sets whose samples are the numbers 0, 1, 2, ...
namespace hortator::test {

struct Numbers {
  std::int64_t count = 0;
  std::int64_t size() const { return count; }
  std::int64_t get(std::int64_t i) const { return i; }
};

struct Stream {
  std::int64_t count = 0;
  std::int64_t at = 0;
  void reset() { at = 0; }
  std::optional<std::int64_t> next() { return at < count ? std::optional(at++) : std::nullopt; }
};

}  // namespace hortator::test
