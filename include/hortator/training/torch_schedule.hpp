#pragma once

#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <hortator/export.hpp>
#include <hortator/schedule.hpp>

namespace hortator {

/// A prepared scheduler of torch::optim, or of a class of yours that derives from its LRScheduler. It advances as other
/// schedules do (AcceleratorOptions::schedule_step). Checkpoints hold its number of steps and the rates that it has
/// set; what a class of yours keeps beside these must be registered by register_for_checkpointing().
class HORTATOR_API TorchSchedule : public ScheduleBase {
 public:
  /// Borrows both. Throws UsageError unless the scheduler sets the rates of this optimizer.
  TorchSchedule(torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer);
  /// Another handle of a TorchSchedule. Throws UsageError for another kind of schedule.
  explicit TorchSchedule(const ScheduleBase& schedule);

  void step();
};

}  // namespace hortator
