#pragma once

#include "step/schedule/plateau_watch.hpp"
#include "step/schedule/schedule_core.hpp"

namespace hortator::step {

/// Reduces an optimizer's rates when a metric stops improving.
class PlateauSchedule final : public ScheduleCore {
 public:
  PlateauSchedule(torch::optim::Optimizer& optimizer, const PlateauOptions& options);

  /// Counts one metric. @collective if attached.
  void step(double metric);

  void attach(const ScheduleLink& link) override { link_ = link; }
  bool is_attached_to(const AcceleratorSession& session) const override { return link_.session.get() == &session; }
  const torch::optim::Optimizer& optimizer() const override { return *optimizer_; }

  std::int64_t steps() const override { return step_; }
  std::string effect() const override { return "reduce_on_plateau, each call counts one metric"; }

  StateDict state() const override;
  void load(const StateDict& state) override;

 private:
  void reduce();

  torch::optim::Optimizer* optimizer_;
  PlateauOptions options_;
  PlateauWatch watch_;
  std::int64_t step_ = 0;
  ScheduleLink link_;
};

}  // namespace hortator::step
