#pragma once

#include <cstdint>
#include <hortator/training/schedules.hpp>

namespace hortator {

namespace step {
class PlateauSchedule;
}

/// Of ReduceOnPlateau.
struct PlateauOptions {
  enum class Mode { min, max };
  enum class Threshold { relative, absolute };

  Mode mode = Mode::min;                           ///< min: a lower metric is better
  double factor = 0.1;                             ///< the rate is multiplied by it
  std::int64_t patience = 10;                      ///< calls without improvement that are borne
  double threshold = 1e-4;                         ///< what counts as an improvement
  Threshold threshold_mode = Threshold::relative;  ///< of the best metric so far, or in its own units
  std::int64_t cooldown = 0;                       ///< calls after a reduction that are not counted as bad
  PerGroup min_lr = 0.0;
  double eps = 1e-8;  ///< reductions by less are left out
};

/// Multiplies the learning rate by a factor when a metric has stopped improving; torch's ReduceLROnPlateau.
class HORTATOR_API ReduceOnPlateau : public ScheduleBase {
 public:
  explicit ReduceOnPlateau(torch::optim::Optimizer& optimizer, const PlateauOptions& options = {});

  /// Counts one evaluation, whatever the number of ranks or the optimizer's updates. Prepared: @collective, and all
  /// ranks must bring the same metric (gather_for_metrics, reduce), or else all throw an error that names them; what
  /// differs by rounding alone counts as rank 0's.
  void step(double metric);
};

}  // namespace hortator
