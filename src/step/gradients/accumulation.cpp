#include "step/gradients/accumulation.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::step {

Accumulation::Accumulation(std::int64_t steps, const GradientAccumulationOptions& options) : options_(options) {
  set_steps(steps);
}

void Accumulation::begin_micro_step(bool is_last_batch) {
  if (options_.sync_with_dataloader && is_last_batch) return restart();
  ++taken_;
  sync_gradients_ = taken_ % steps_ == 0;
}

void Accumulation::restart() {
  taken_ = 0;
  sync_gradients_ = true;
}

void Accumulation::set_steps(std::int64_t steps) {
  if (steps < 1) {
    throw UsageError({.what = text::concat("gradient_accumulation_steps is ", steps),
                      .why = "it is the number of micro-steps of each update",
                      .hint = "use 1 for an update after each batch, or more"});
  }
  steps_ = steps;
}

}  // namespace hortator::step
