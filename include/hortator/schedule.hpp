#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <hortator/export.hpp>
#include <hortator/state_dict.hpp>
#include <memory>

namespace hortator {

class Optimizer;
namespace train {
class ScheduleCore;
}

/// How often a prepared schedule advances at an optimizer update.
enum class ScheduleStep {
  per_process,  ///< once a rank: total steps count batches of all ranks, as the reference does (once when batches are
                ///< split)
  per_update,   ///< once
};

/// A learning rate as a function of the step: lr = (lr at construction) * factor(step). Copies share one state.
class HORTATOR_API Schedule {
 public:
  /// The optimizer is borrowed and must outlive the schedule. The factor of step 0 holds at once.
  Schedule(torch::optim::Optimizer& optimizer, std::function<double(std::int64_t step)> factor);

  /// Advances. Prepared: by the ScheduleStep of the Accelerator, and only when its optimizer has stepped.
  void step();
  double last_lr() const;  ///< of the first parameter group
  std::int64_t steps() const;

  StateDict state() const;
  void load(const StateDict& state);

  train::ScheduleCore& core() const { return *core_; }

 private:
  std::shared_ptr<train::ScheduleCore> core_;
};

struct LinearWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
};
/// From 0 up to the full rate over warmup_steps, then down to 0 at total_steps, both in straight lines.
HORTATOR_API Schedule linear_warmup(torch::optim::Optimizer& optimizer, const LinearWarmup& options);

struct CosineWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double floor = 0;  ///< the factor at the end
};
/// From 0 up to the full rate over warmup_steps, then along half a cosine down to `floor` at total_steps.
HORTATOR_API Schedule cosine_warmup(torch::optim::Optimizer& optimizer, const CosineWarmup& options);

}  // namespace hortator
