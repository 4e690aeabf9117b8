#include <hortator/optimizer.hpp>

#include "base/call_site.hpp"
#include "train/optimizer_core.hpp"

namespace hortator {
namespace train {

void OptimizerCore::step() {
  check_alive();
  if (!surroundings_.gradients_synchronised()) return;
  surroundings_.synchronise();
  skipped_ = scaled_ && !scaled_->may_step();
  if (!skipped_) train::step(*optimizer_, surroundings_.kernel);
}

void OptimizerCore::zero_grad(bool set_to_none) {
  check_alive();
  if (!surroundings_.gradients_synchronised()) return;
  optimizer_->zero_grad(set_to_none);
  surroundings_.cleared(parameters());
}

}  // namespace train

void Optimizer::step() {
  const CallSite site(__builtin_return_address(0));
  core_->step();
}

bool Optimizer::step_was_skipped() const { return core_->step_was_skipped(); }

void Optimizer::zero_grad(bool set_to_none) { core_->zero_grad(set_to_none); }

torch::optim::Optimizer& Optimizer::unwrap() const { return core_->optimizer(); }

}  // namespace hortator
