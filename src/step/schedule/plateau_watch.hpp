#pragma once

#include <hortator/training/reduce_on_plateau.hpp>

namespace hortator::step {

/// Decides whether a series of metrics has stopped improving. Pure.
class PlateauWatch {
 public:
  explicit PlateauWatch(const PlateauOptions& options);

  /// Counts one metric. Returns whether the rate must be reduced now.
  bool should_reduce(double metric);

  StateDict state() const;
  void load(const StateDict& state);

 private:
  bool is_better(double metric) const;

  PlateauOptions options_;
  double best_;
  std::int64_t bad_ = 0;            ///< consecutive calls without improvement
  std::int64_t cooldown_left_ = 0;  ///< remaining calls that do not count as bad
};

}  // namespace hortator::step
