#pragma once

#include <cstdint>
#include <hortator/training/state_dict.hpp>

namespace hortator::step {

/// Finds losses that are not finite, and spikes above the running mean.
class LossWatch {
 public:
  static constexpr std::int64_t warm_up = 20;  ///< losses before the first that can be a spike

  /// `spike_factor`: 0 for no spikes.
  explicit LossWatch(double spike_factor) : spike_factor_(spike_factor) {}

  /// Whether this loss is bad. A finite one enters the mean; a spike as the largest loss that is none, so that the mean
  /// follows a lasting rise, and only a few spikes of it are found.
  bool is_bad(double loss);
  /// Begins from scratch: the next losses are those of another model.
  void forget() { mean_ = 0, count_ = 0; }

  StateDict state() const;
  void load(const StateDict& saved);

 private:
  double spike_factor_;
  double mean_ = 0;  ///< of magnitudes, over about warm_up losses
  std::int64_t count_ = 0;
};

}  // namespace hortator::step
