#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace hortator::step {

/// A sum whose rounding depends on the number of terms alone: neighbours first, then neighbours of those sums, and so
/// on; an odd one out goes up as it is. Sums over aligned runs of 2^k terms are inner nodes of that tree: whoever forms
/// them, the whole is bitwise the same.
class PairwiseSum {
 public:
  /// Takes `term` over, and may change it.
  void add(at::Tensor term);
  int terms() const { return terms_; }
  /// The sum; empties this. There is at least one term.
  at::Tensor take();

 private:
  struct Node {
    at::Tensor sum;
    int terms;
  };

  std::vector<Node> nodes_;  ///< of falling size
  int terms_ = 0;
};

}  // namespace hortator::step
