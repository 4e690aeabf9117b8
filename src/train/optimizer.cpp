#include <hortator/optimizer.hpp>

#include "train/optimizer_core.hpp"

namespace hortator {
namespace train {

void OptimizerCore::step() {
  check_alive();
  synchronise_();
  train::step(*optimizer_, kernel_);
}

}  // namespace train

void Optimizer::step() { core_->step(); }

void Optimizer::zero_grad(bool set_to_none) { core_->optimizer().zero_grad(set_to_none); }

torch::optim::Optimizer& Optimizer::unwrap() const { return core_->optimizer(); }

}  // namespace hortator
