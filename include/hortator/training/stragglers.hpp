#pragma once

#include <functional>
#include <string>

namespace hortator {

/// A rank that computes longer than the others, which wait for it.
struct Straggler {
  int rank = 0;
  std::string host = {};
  double factor = 1;  ///< its time between two reductions of gradients over the median of the other ranks
};

/// Names ranks that are slow in each step: an overheated device, a disturbed node, a slow disk. The times travel beside
/// the gradients, at no extra message; the time in which a rank waits for others does not count. Up to 64 ranks
/// report in every step; more take turns. Where operators gather parameters (ZeRO stage 3 over several nodes)
/// the others wait within their steps, so that a slow rank may stay unnamed.
struct StragglerOptions {
  /// Called on all ranks, after backward, when a rank becomes slow; again only after it has recovered. Rank 0 logs a
  /// warning as well. Empty: times are not measured.
  std::function<void(const Straggler&)> on_straggler = {};
  double factor = 2;  ///< above which a rank is slow
  int patience = 5;   ///< reports in a row
};

}  // namespace hortator
