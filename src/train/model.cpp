#include <hortator/model.hpp>

#include "train/model_core.hpp"

namespace hortator {

std::vector<at::Tensor> ModelBase::parameters() const {
  core_->check_alive();
  return core_->module().parameters();
}

void ModelBase::train(bool on) const {
  core_->check_alive();
  core_->module().train(on);
}

void ModelBase::zero_grad() const {
  core_->check_alive();
  core_->module().zero_grad();
}

void ModelBase::before_forward() const { core_->before_forward(); }

}  // namespace hortator
