#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hortator::data {

/// Draws numbers with probabilities proportional to weights, in constant time (Walker's alias method): there is one
/// equal column for each number, which is shared by that number and one other.
class AliasTable {
 public:
  /// The weights must be finite and not negative, and at least one must be positive.
  explicit AliasTable(std::span<const double> weights);

  /// Both arguments are 64 random bits.
  std::int64_t draw(std::uint64_t column, std::uint64_t coin) const;

 private:
  struct Column {
    double own;  ///< the probability of its own number
    std::int64_t other;
  };
  std::vector<Column> columns_;
};

}  // namespace hortator::data
