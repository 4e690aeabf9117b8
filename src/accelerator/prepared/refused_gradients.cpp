#include "accelerator/prepared/refused_gradients.hpp"

#include <algorithm>

namespace hortator::accelerator {
namespace {

bool holds_refused(const std::shared_ptr<step::OptimizerCore>& optimizer) {
  return optimizer->holds_refused_gradients();
}

bool has_any_of(const step::OptimizerCore& optimizer, const step::TensorSet& parameters) {
  const auto own = optimizer.parameters();
  return std::ranges::any_of(own,
                             [&](const at::Tensor& one) { return parameters.contains(one.unsafeGetTensorImpl()); });
}

}  // namespace

// One check for all tensors, since each waits for the device.
bool any_new_nonfinite(const Prepared& prepared) {
  std::vector<at::Tensor> holders;
  for (const auto& optimizer : prepared.optimizers()) {
    if (optimizer->holds_refused_gradients()) continue;
    if (optimizer->was_nonfinite()) return true;
    const auto own = optimizer->gradient_holders();
    holders.insert(holders.end(), own.begin(), own.end());
  }
  return step::has_nonfinite_gradient(holders);
}

RefusedGradients::RefusedGradients(const Prepared& prepared) : prepared_(prepared) {
  if (std::ranges::any_of(prepared.optimizers(), holds_refused)) marks_ = step::marks_of(prepared.models());
}

void RefusedGradients::renew() const {
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    if (!marks_[i].have_changed()) continue;
    const auto reached = step::tensor_set(prepared_.models()[i]->module().parameters());
    for (const auto& optimizer : prepared_.optimizers()) {
      if (optimizer->holds_refused_gradients() && has_any_of(*optimizer, reached)) optimizer->note_new_gradients();
    }
  }
}

}  // namespace hortator::accelerator
