#include <hortator/optimizer.hpp>

#include "core/call_site.hpp"
#include "step/optimizer/optimizer_core.hpp"

namespace hortator {

void Optimizer::step() {
  const CallSite site(__builtin_return_address(0));
  core_->step();
}

at::Tensor Optimizer::step(const torch::optim::Optimizer::LossClosure& closure) {
  const CallSite site(__builtin_return_address(0));
  return core_->step(closure);
}

void Optimizer::train() {
  const CallSite site(__builtin_return_address(0));
  core_->use_weights(step::WeightUse::train);
}

void Optimizer::eval() {
  const CallSite site(__builtin_return_address(0));
  core_->use_weights(step::WeightUse::evaluate);
}

bool Optimizer::step_was_skipped() const { return core_->step_was_skipped(); }

void Optimizer::zero_grad(bool set_to_none) { core_->zero_grad(set_to_none); }

torch::optim::Optimizer& Optimizer::unwrap() const { return core_->optimizer(); }

}  // namespace hortator
