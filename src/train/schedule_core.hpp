#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <hortator/state_dict.hpp>
#include <memory>
#include <vector>

#include "train/session.hpp"

namespace hortator::train {

/// What stands behind a Schedule.
class ScheduleCore {
 public:
  ScheduleCore(torch::optim::Optimizer& optimizer, std::function<double(std::int64_t)> factor);

  /// From now on each step advances `times`, and only while the session lives.
  void attach(std::shared_ptr<const Session> session, std::int64_t times);
  bool is_attached_to(const Session& session) const { return session_.get() == &session; }

  void step();
  double last_lr() const;
  std::int64_t steps() const { return step_; }

  StateDict state() const;
  void load(const StateDict& state);

 private:
  void apply() const;

  torch::optim::Optimizer* optimizer_;
  std::function<double(std::int64_t)> factor_;
  std::vector<double> base_rates_;  ///< by parameter group
  std::int64_t step_ = 0;
  std::int64_t times_ = 1;
  std::shared_ptr<const Session> session_;
};

}  // namespace hortator::train
