#include "step/reproducible/pairwise_sum.hpp"

#include <algorithm>
#include <iterator>

namespace hortator::step {

void PairwiseSum::add(int number, at::Tensor term) {
  auto node = std::ranges::find_if(nodes_, [&](const Node& one) { return one.begin > number; });
  node = nodes_.insert(node, {.sum = std::move(term), .begin = number, .terms = 1});
  ++terms_;
  while (true) {
    const bool is_left = node->begin % (2 * node->terms) == 0;
    if (is_left ? std::next(node) == nodes_.end() : node == nodes_.begin()) return;
    const auto left = is_left ? node : std::prev(node), right = std::next(left);
    if (left->terms != right->terms || left->begin + left->terms != right->begin) return;
    left->sum += right->sum;
    left->terms *= 2;
    nodes_.erase(right);
    node = left;
  }
}

at::Tensor PairwiseSum::take() {
  auto sum = std::move(nodes_.back().sum);
  for (nodes_.pop_back(); !nodes_.empty(); nodes_.pop_back()) sum = nodes_.back().sum.add_(sum);
  terms_ = 0;
  return sum;
}

}  // namespace hortator::step
