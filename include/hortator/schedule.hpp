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
  per_process,  ///< by the number of ranks, so that total steps count batches of all ranks, as in Hugging Face
                ///< Accelerate (by one if batches are split)
  per_update,   ///< by one
};

/// The common part of all schedules. Copies share one state. The optimizer is borrowed and must outlive them.
class HORTATOR_API ScheduleBase {
 public:
  double last_lr() const;                ///< of the first parameter group
  std::vector<double> last_lrs() const;  ///< of each parameter group, as torch's get_last_lr()
  std::int64_t steps() const;            ///< steps so far; torch's last_epoch

  /// Counts steps of the schedule, so that a run on another number of ranks resumes at the same rate.
  StateDict state() const;
  void load(const StateDict& state);

  step::ScheduleCore& core() const { return *core_; }

 protected:
  explicit ScheduleBase(std::shared_ptr<step::ScheduleCore> core) : core_(std::move(core)) {}

 private:
  std::shared_ptr<step::ScheduleCore> core_;
};

/// A learning rate as a function of the step: lr = (lr at construction) * factor(step), as torch's LambdaLR. For
/// ready-made schedules see <hortator/training/schedules.hpp>.
class HORTATOR_API Schedule : public ScheduleBase {
 public:
  using Factor = std::function<double(std::int64_t step)>;

  /// One function for all parameter groups, or one for each group. Sets the rate of step 0 at once.
  Schedule(torch::optim::Optimizer& optimizer, Factor factor);
  Schedule(torch::optim::Optimizer& optimizer, std::vector<Factor> factors);
  explicit Schedule(std::shared_ptr<step::CourseSchedule> core);

  /// Advances by one step. The pace of a prepared schedule is AcceleratorOptions::schedule_step, and it advances only
  /// if gradients were synchronised and its optimizer has stepped; a schedule with an end (one_cycle) then stays at its
  /// end. With step_scheduler_with_optimizer = false it always advances by one step.
  void step();
};

}  // namespace hortator
