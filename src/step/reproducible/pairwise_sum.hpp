#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace hortator::step {

/// A sum whose rounding depends on the number of terms only. Adds neighbours, then neighbours of those sums, and so on;
/// an odd last term moves up unchanged. Sums of aligned runs of 2^k terms are inner nodes of this tree, so the total is
/// bitwise equal whichever rank computes them, and in which order their terms come.
class PairwiseSum {
 public:
  /// Takes ownership of `term`, and may change it.
  void add(at::Tensor term) { add(terms_, std::move(term)); }
  /// The same for terms that come in any order, each once: `number` is the term's place among all.
  void add(int number, at::Tensor term);
  int terms() const { return terms_; }
  /// Returns the sum and becomes empty. Needs at least one term.
  at::Tensor take();

 private:
  struct Node {
    at::Tensor sum;
    int begin;  ///< the number of its first term
    int terms;
  };

  std::vector<Node> nodes_;  ///< in the order of their terms
  int terms_ = 0;
};

}  // namespace hortator::step
