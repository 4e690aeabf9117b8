#pragma once

#include <hortator/training/reduce_on_plateau.hpp>

namespace hortator::step {

/// Judges a series of metrics: has it stopped improving? Pure.
class PlateauWatch {
 public:
  explicit PlateauWatch(const PlateauOptions& options);

  /// Counts one metric. True: the rate is to be reduced now.
  bool should_reduce(double metric);

  StateDict state() const;
  void load(const StateDict& state);

 private:
  bool is_better(double metric) const;

  PlateauOptions options_;
  double best_;
  std::int64_t bad_ = 0;            ///< in a row, since the last improvement or reduction
  std::int64_t cooldown_left_ = 0;  ///< calls that do not count as bad
};

}  // namespace hortator::step
