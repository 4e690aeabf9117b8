#include "step/optimizer/fused_step.hpp"

#include <typeinfo>

#include "step/optimizer/fused_adam.hpp"
#include "step/optimizer/fused_sgd.hpp"

namespace hortator::step {

bool fused_step(torch::optim::Optimizer& optimizer, const StepMode& mode) {
  const auto& type = typeid(optimizer);
  if (type == typeid(torch::optim::AdamW)) return fused_adam(static_cast<torch::optim::AdamW&>(optimizer), mode);
  if (type == typeid(torch::optim::Adam)) return fused_adam(static_cast<torch::optim::Adam&>(optimizer), mode);
  if (type == typeid(torch::optim::SGD)) return fused_sgd(static_cast<torch::optim::SGD&>(optimizer), mode);
  return false;
}

void step(torch::optim::Optimizer& optimizer, StepKernel kernel) {
  if (kernel == StepKernel::own || !fused_step(optimizer)) optimizer.step();
}

}  // namespace hortator::step
