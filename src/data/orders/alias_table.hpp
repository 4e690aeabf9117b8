#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hortator::data {

/// Draws numbers in proportion to weights, each draw in the same few steps (Walker's method): of as many equal columns
/// as there are numbers, each is shared by its own number and one other.
class AliasTable {
 public:
  /// The weights are finite, none is negative, and not all are zero.
  explicit AliasTable(std::span<const double> weights);

  /// Both arguments are 64 random bits.
  std::int64_t draw(std::uint64_t column, std::uint64_t coin) const;

 private:
  struct Column {
    double own;  ///< the share of its own number
    std::int64_t other;
  };
  std::vector<Column> columns_;
};

}  // namespace hortator::data
