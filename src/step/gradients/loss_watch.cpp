#include "step/gradients/loss_watch.hpp"

#include <algorithm>
#include <cmath>

namespace hortator::step {

bool LossWatch::is_bad(double loss) {
  if (!std::isfinite(loss)) return true;
  const double size = std::abs(loss);
  const double limit = spike_factor_ * mean_;
  const bool is_spike = spike_factor_ > 0 && count_ >= warm_up && size > limit;
  ++count_;
  mean_ += ((is_spike ? limit : size) - mean_) / static_cast<double>(std::min(count_, warm_up));
  return is_spike;
}

StateDict LossWatch::state() const {
  StateDict state;
  state.put("mean", mean_);
  state.put("count", count_);
  return state;
}

void LossWatch::load(const StateDict& saved) {
  mean_ = saved.get<double>("mean");
  count_ = saved.get<std::int64_t>("count");
}

}  // namespace hortator::step
