#include "step/reproducible/pairwise_sum.hpp"

#include <utility>

namespace hortator::step {

void PairwiseSum::add(at::Tensor term) {
  nodes_.push_back({.sum = std::move(term), .terms = 1});
  ++terms_;
  while (nodes_.size() > 1 && nodes_[nodes_.size() - 2].terms == nodes_.back().terms) {
    auto right = std::move(nodes_.back());
    nodes_.pop_back();
    nodes_.back().sum += right.sum;
    nodes_.back().terms += right.terms;
  }
}

at::Tensor PairwiseSum::take() {
  auto sum = std::move(nodes_.back().sum);
  for (nodes_.pop_back(); !nodes_.empty(); nodes_.pop_back()) sum = nodes_.back().sum.add_(sum);
  terms_ = 0;
  return sum;
}

}  // namespace hortator::step
