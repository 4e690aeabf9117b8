#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hortator::machine {

/// Which bytes of a range [begin, end) an access uses: `width` of them at begin, at begin + period, and so on. A period
/// of 0: all of them.
struct BytePattern {
  std::size_t width = 0;
  std::size_t period = 0;
  bool is_exact = true;  ///< false: of these bytes, the access may use the first ones only
};

/// A range of bytes, and those of them that are used.
struct PatternedRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  BytePattern pattern = {};
};

/// The bytes of a tensor with these sizes and strides, in elements. All bytes of its range, and not exact, where they
/// do not repeat with one period, or pause.
BytePattern pattern_of(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                       std::size_t element_bytes);

/// Whether there certainly is a byte that both use. False where a pattern is not exact, unless both begin at one byte.
bool share_bytes(const PatternedRange& a, const PatternedRange& b);

/// Whether `all` certainly uses each byte of `part`.
bool covers(const PatternedRange& all, const PatternedRange& part);

}  // namespace hortator::machine
