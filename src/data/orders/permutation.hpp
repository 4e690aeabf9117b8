#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/hash.hpp"

namespace hortator::data {

/// A bijection of [0, size), different for each key, that computes each position independently: a Feistel network. A
/// position is split into (high, low), two digits of about sqrt(size) values each; each round shifts one of them by a
/// hash of the other. The digits cover slightly more than `size` positions: a result beyond `size` is mapped again
/// until it is inside (cycle walking).
///
/// A round mixes pairs of positions that agree in one digit badly. Such pairs are more frequent for small sizes, which
/// therefore take more rounds.
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t key);

  std::int64_t size() const { return static_cast<std::int64_t>(size_); }
  /// The image of `position`. Each `tweak` gives a different bijection.
  std::int64_t operator()(std::int64_t position, std::uint64_t tweak = 0) const {
    auto at = static_cast<std::uint64_t>(position);
    do at = forward(at, tweak);
    while (at >= size_);
    return static_cast<std::int64_t>(at);
  }
  /// The position whose image is `image`.
  std::int64_t position_of(std::int64_t image) const;

 private:
  struct Digits {
    std::uint64_t high;
    std::uint64_t low;
  };
  static constexpr std::size_t max_rounds = 42;

  Digits digits(std::uint64_t position) const {
    // Multiplies instead of dividing; the quotient may be one too small.
    auto high = core::high_product(position, reciprocal_);
    auto low = position - high * lows_;
    const bool is_short = low >= lows_;
    return {high + (is_short ? 1 : 0), low - (is_short ? lows_ : 0)};
  }
  /// How far the other digit moves: a number below `range`.
  static std::uint64_t shift(std::uint64_t digit, std::uint64_t key, std::uint64_t range) {
    const auto spread = digit * 0xa0761d6478bd642fU + key;
    return core::high_product(core::folded_product(spread, spread ^ 0xe7037ed1a0b428dbU), range);
  }
  std::uint64_t forward(std::uint64_t position, std::uint64_t tweak) const {
    auto [high, low] = digits(position);
    for (int i = 0; i < 2 * pairs_; i += 2) {
      high += shift(low, keys_[i] + tweak, highs_);
      high -= high >= highs_ ? highs_ : 0;
      low += shift(high, keys_[i + 1] + tweak, lows_);
      low -= low >= lows_ ? lows_ : 0;
    }
    return high * lows_ + low;
  }
  std::uint64_t backward(std::uint64_t image) const;

  std::uint64_t size_;
  std::uint64_t highs_;  ///< values of the high digit
  std::uint64_t lows_;
  std::uint64_t reciprocal_;  ///< of lows_, in units of 2^-64
  int pairs_;                 ///< of rounds
  std::array<std::uint64_t, max_rounds> keys_{};
};

}  // namespace hortator::data
