#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <string>

#include "step/accelerator_session.hpp"
#include "step/schedule/schedule_pace.hpp"

namespace hortator::step {

/// Connects a prepared schedule to its Accelerator.
struct ScheduleLink {
  std::shared_ptr<const AcceleratorSession> session = {};
  SchedulePace pace = {};
  std::function<bool()> gradients_synchronised = {};
  std::function<bool()> optimizer_was_skipped = {};
  std::function<double(double metric)> agree_on_metric = {};  ///< throws if ranks differ. @collective

  void check_alive() const {
    if (session) session->check_alive("schedule");
  }
  StepRecording* recording() const { return session ? session->recording() : nullptr; }
};

/// A schedule; handles share it.
class ScheduleCore {
 public:
  virtual ~ScheduleCore() = default;

  virtual void attach(const ScheduleLink& link) = 0;
  virtual bool is_attached_to(const AcceleratorSession& session) const = 0;
  virtual const torch::optim::Optimizer& optimizer() const = 0;

  virtual std::int64_t steps() const = 0;
  /// Text for the log: how an attached schedule advances with the run.
  virtual std::string effect() const = 0;

  virtual StateDict state() const = 0;
  virtual void load(const StateDict& state) = 0;
};

}  // namespace hortator::step
