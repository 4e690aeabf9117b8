#pragma once

#include <cstdint>
#include <hortator/training/schedules.hpp>

namespace hortator {

namespace step {
class PlateauSchedule;
}

/// Options of ReduceOnPlateau.
struct PlateauOptions {
  enum class Mode { min, max };
  enum class Threshold { relative, absolute };

  Mode mode = Mode::min;                           ///< min: a lower metric is better
  double factor = 0.1;                             ///< multiplies the rate
  std::int64_t patience = 10;                      ///< calls without improvement before a reduction
  double threshold = 1e-4;                         ///< the smallest improvement that counts
  Threshold threshold_mode = Threshold::relative;  ///< relative to the best metric, or absolute
  std::int64_t cooldown = 0;                       ///< calls after a reduction that do not count as bad
  PerGroup min_lr = 0.0;
  double eps = 1e-8;  ///< smaller reductions are not applied
};

/// Multiplies the learning rate by a factor when a metric stops improving; torch's ReduceLROnPlateau.
class HORTATOR_API ReduceOnPlateau : public ScheduleBase {
 public:
  explicit ReduceOnPlateau(torch::optim::Optimizer& optimizer, const PlateauOptions& options = {});

  /// Counts one evaluation, whatever the number of ranks or the optimizer's updates. If prepared, it is @collective,
  /// and all ranks must pass the same metric (gather_for_metrics, reduce). Otherwise all throw an error that names the
  /// ranks that differ. Metrics that differ only by rounding count as rank 0's.
  void step(double metric);
};

}  // namespace hortator
