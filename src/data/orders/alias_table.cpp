#include "data/orders/alias_table.hpp"

#include <algorithm>

#include "core/wide.hpp"

namespace hortator::data {
namespace {

// Weights with mean 1. Divides by the largest first, since the sum may overflow.
std::vector<double> normalized(std::span<const double> weights) {
  std::vector<double> shares(weights.begin(), weights.end());
  const double largest = *std::max_element(shares.begin(), shares.end());
  double sum = 0;
  for (auto& share : shares) sum += share /= largest;
  for (auto& share : shares) share *= static_cast<double>(shares.size()) / sum;
  return shares;
}

}  // namespace

AliasTable::AliasTable(std::span<const double> weights) : columns_(weights.size()) {
  auto left = normalized(weights);
  const auto heaviest = std::max_element(weights.begin(), weights.end()) - weights.begin();
  std::vector<std::size_t> scarce;
  std::vector<std::size_t> ample;
  for (std::size_t i = 0; i < left.size(); ++i) {
    // Columns that no later step changes are whole, except those of numbers that must never be drawn.
    columns_[i] = weights[i] > 0 ? Column{1, static_cast<std::int64_t>(i)} : Column{0, heaviest};
    (left[i] < 1 ? scarce : ample).push_back(i);
  }
  while (!scarce.empty() && !ample.empty()) {
    const auto small = scarce.back();
    const auto large = ample.back();
    scarce.pop_back();
    columns_[small] = {left[small], static_cast<std::int64_t>(large)};
    left[large] -= 1 - left[small];
    if (left[large] >= 1) continue;
    ample.pop_back();
    scarce.push_back(large);
  }
}

std::int64_t AliasTable::draw(std::uint64_t column, std::uint64_t coin) const {
  const auto number = core::high_product(column, columns_.size());
  const auto& [own, other] = columns_[number];
  constexpr double unit = 0x1p-53;
  return static_cast<double>(coin >> 11) * unit < own ? static_cast<std::int64_t>(number) : other;
}

}  // namespace hortator::data
