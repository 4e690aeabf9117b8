#pragma once

#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <cstdint>
#include <string>

#include "step/schedule/schedule_core.hpp"

namespace hortator::step {

/// Whether a scheduler of torch::optim sets this optimizer's rates. Changes a rate meanwhile, and puts it back.
bool sets_rates_of(const torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer);

/// Steps a scheduler of torch::optim.
class TorchScheduleCore final : public ScheduleCore {
 public:
  /// Borrows both. Throws UsageError unless sets_rates_of().
  TorchScheduleCore(torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer);

  /// Advances by one step, or by as many as the link requires.
  void step();
  bool wraps(const torch::optim::LRScheduler& scheduler) const { return scheduler_ == &scheduler; }

  void attach(const ScheduleLink& link) override { link_ = link; }
  bool is_attached_to(const AcceleratorSession& session) const override { return link_.session.get() == &session; }
  const torch::optim::Optimizer& optimizer() const override { return *optimizer_; }

  std::int64_t steps() const override;
  std::string effect() const override;

  StateDict state() const override;
  void load(const StateDict& state) override;

 private:
  void step_now();

  torch::optim::LRScheduler* scheduler_;
  torch::optim::Optimizer* optimizer_;
  ScheduleLink link_;
};

}  // namespace hortator::step
