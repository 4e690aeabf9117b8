#include "step/schedule/plateau_watch.hpp"

#include <limits>

namespace hortator::step {

using Mode = PlateauOptions::Mode;
using Threshold = PlateauOptions::Threshold;

PlateauWatch::PlateauWatch(const PlateauOptions& options)
    : options_(options),
      best_(options.mode == Mode::min ? std::numeric_limits<double>::infinity()
                                      : -std::numeric_limits<double>::infinity()) {}

bool PlateauWatch::should_reduce(double metric) {
  if (is_better(metric)) {
    best_ = metric;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_ = 0;
  }
  if (bad_ <= options_.patience) return false;
  cooldown_left_ = options_.cooldown;
  bad_ = 0;
  return true;
}

bool PlateauWatch::is_better(double metric) const {
  const double sign = options_.mode == Mode::min ? -1 : 1;
  const double bar = options_.threshold_mode == Threshold::relative ? best_ * (1 + sign * options_.threshold)
                                                                    : best_ + sign * options_.threshold;
  return options_.mode == Mode::min ? metric < bar : metric > bar;
}

StateDict PlateauWatch::state() const {
  StateDict state;
  state.put("best", best_);
  state.put("bad", bad_);
  state.put("cooldown_left", cooldown_left_);
  return state;
}

void PlateauWatch::load(const StateDict& state) {
  best_ = state.get<double>("best");
  bad_ = state.get<std::int64_t>("bad");
  cooldown_left_ = state.get<std::int64_t>("cooldown_left");
}

}  // namespace hortator::step
