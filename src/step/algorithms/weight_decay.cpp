#include "step/algorithms/weight_decay.hpp"

namespace hortator::step {

at::Tensor decay_weights(at::Tensor& parameter, const at::Tensor& gradient, const NamedOptions& options) {
  const double decay = options.get("weight_decay");
  if (decay == 0) return gradient;
  if (options.get("decoupled_weight_decay") == 0) return gradient.add(parameter, decay);
  parameter.mul_(1 - options.get_lr() * decay);
  return gradient;
}

}  // namespace hortator::step
