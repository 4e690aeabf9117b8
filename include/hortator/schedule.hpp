#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <hortator/export.hpp>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <vector>

namespace hortator {

namespace step {
class CourseSchedule;
class ScheduleCore;
}  // namespace step

/// How often a prepared schedule advances at an optimizer update.
enum class ScheduleStep {
  per_process,  ///< once a rank: total steps count batches of all ranks, as the reference does (once when batches are
                ///< split)
  per_update,   ///< once
};

/// What all schedules have in common. Copies share one state. The optimizer is borrowed and must outlive them.
class HORTATOR_API ScheduleBase {
 public:
  double last_lr() const;      ///< of the first parameter group
  std::int64_t steps() const;  ///< how often it has advanced; torch's last_epoch

  /// Counted in steps of the schedule, so that a run on another number of ranks goes on at the same rate.
  StateDict state() const;
  void load(const StateDict& state);

  step::ScheduleCore& core() const { return *core_; }

 protected:
  explicit ScheduleBase(std::shared_ptr<step::ScheduleCore> core) : core_(std::move(core)) {}

 private:
  std::shared_ptr<step::ScheduleCore> core_;
};

/// A learning rate as a function of the step: lr = (lr at construction) * factor(step); torch's LambdaLR. The
/// ready-made ones are in <hortator/training/schedules.hpp>.
class HORTATOR_API Schedule : public ScheduleBase {
 public:
  using Factor = std::function<double(std::int64_t step)>;

  /// One function for all parameter groups, or one a group. The factor of step 0 holds at once.
  Schedule(torch::optim::Optimizer& optimizer, Factor factor);
  Schedule(torch::optim::Optimizer& optimizer, std::vector<Factor> factors);
  explicit Schedule(std::shared_ptr<step::CourseSchedule> core);

  /// Advances by one step. Prepared: by AcceleratorOptions::schedule_step, and only when gradients were synchronised
  /// and its optimizer has stepped; a schedule that ends (one_cycle) then stays at its end. With
  /// step_scheduler_with_optimizer = false: by one step, always.
  void step();
};

}  // namespace hortator
