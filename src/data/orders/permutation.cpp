#include "data/orders/permutation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/hash.hpp"

namespace hortator::data {
namespace {

std::uint64_t root_above(std::uint64_t number) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(number)));
  while (root * root < number) ++root;
  return std::max<std::uint64_t>(root, 1);
}

// Two rounds reduce the probability of badly mixed pairs by the number of values of a digit; 2^-20 is enough.
int pairs_for(std::uint64_t values, int max_pairs) {
  constexpr int min_pairs = 3;
  const int bits = std::max(static_cast<int>(std::bit_width(values)) - 1, 1);
  return std::clamp((20 + bits - 1) / bits + 1, min_pairs, max_pairs);
}

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t key)
    : size_(static_cast<std::uint64_t>(size)),
      highs_(root_above(size_)),
      lows_(std::max<std::uint64_t>((size_ + highs_ - 1) / highs_, 1)),
      reciprocal_(std::numeric_limits<std::uint64_t>::max() / lows_),
      pairs_(pairs_for(lows_, max_rounds / 2)) {
  for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = core::mix(key, i);
}

std::int64_t Permutation::position_of(std::int64_t image) const {
  auto at = static_cast<std::uint64_t>(image);
  do at = backward(at);
  while (at >= size_);
  return static_cast<std::int64_t>(at);
}

std::uint64_t Permutation::backward(std::uint64_t image) const {
  auto [high, low] = digits(image);
  for (int i = 2 * pairs_ - 2; i >= 0; i -= 2) {
    low += lows_ - shift(high, keys_[i + 1], lows_);
    low -= low >= lows_ ? lows_ : 0;
    high += highs_ - shift(low, keys_[i], highs_);
    high -= high >= highs_ ? highs_ : 0;
  }
  return high * lows_ + low;
}

}  // namespace hortator::data
