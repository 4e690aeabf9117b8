#pragma once

#include <cstdint>
#include <hortator/training/accumulation.hpp>

namespace hortator::step {

/// Counts micro-steps, and decides in which of them gradients are synchronised and optimizers step.
class Accumulation {
 public:
  Accumulation(std::int64_t steps, const GradientAccumulationOptions& options);

  void begin_micro_step(bool is_last_batch);
  /// Starts a new group. Gradients are synchronised until the next begin_micro_step().
  void restart();

  /// How far the running group has come.
  struct Position {
    std::int64_t taken = 0;  ///< micro-steps
    bool sync_gradients = true;
  };
  Position position() const { return {.taken = taken_, .sync_gradients = sync_gradients_}; }
  void resume_at(const Position& position) {
    taken_ = position.taken;
    sync_gradients_ = position.sync_gradients;
  }

  bool sync_gradients() const { return sync_gradients_; }
  void set_sync_gradients(bool sync) { sync_gradients_ = sync; }
  /// Whether gradients stay on their rank in this micro-step.
  bool keeps_gradients() const { return !sync_gradients_ && !options_.sync_each_batch; }

  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps);

 private:
  std::int64_t steps_ = 1;
  std::int64_t taken_ = 0;
  bool sync_gradients_ = true;
  GradientAccumulationOptions options_;
};

}  // namespace hortator::step
